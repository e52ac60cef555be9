// Health check: the process responds. Does not query the database, so that a database fault does
// not take every replica down.
import { getHealth, SERVICE_NAME } from '@berth/contract/health.ts';
import { bind } from '../call/bind.ts';

export const healthRoutes = [bind(getHealth, () => Promise.resolve({ ok: true as const, service: SERVICE_NAME }))];
