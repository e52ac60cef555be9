// The health check: the process answers. It asks nothing of the database, so that a fault there
// does not take every replica away.
import { getHealth, SERVICE_NAME } from '@berth/contract/health.ts';
import { bind } from '../call/bind.ts';

export const healthRoutes = [bind(getHealth, () => Promise.resolve({ ok: true as const, service: SERVICE_NAME }))];
