// Connections into sandboxes on the wire.
import { terminalInSandbox } from '@berth/contract/terminal.ts';
import { tunnelToSandbox } from '@berth/contract/tunnel.ts';
import { connect, toPort, toTerminal } from '../services/connections.ts';
import { bindWebSocket } from './bind.ts';

export const connectionRoutes = [
  bindWebSocket(tunnelToSandbox, 'tunnel', (context, connecting, { port }) => connect(context, connecting, toPort(port))),
  bindWebSocket(terminalInSandbox, 'terminal', (context, connecting, size) => connect(context, connecting, toTerminal(size))),
];
