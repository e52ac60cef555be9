// Connections into sandboxes on the wire.
import { tunnelToSandbox } from '@berth/contract/tunnel.ts';
import { connect, toPort } from '../services/connections.ts';
import { bindWebSocket } from './bind.ts';

export const connectionRoutes = [
  bindWebSocket(tunnelToSandbox, 'tunnel', (context, connecting, { port }) => connect(context, connecting, toPort(port))),
];
