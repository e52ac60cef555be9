// Connections into sandboxes on the wire, and what an ssh client has to know for one.
import { getSshAccess } from '@berth/contract/ssh.ts';
import { terminalInSandbox } from '@berth/contract/terminal.ts';
import { tunnelToSandbox } from '@berth/contract/tunnel.ts';
import { connect, toPort, toTerminal } from '../services/connections.ts';
import { sshAccess } from '../services/ssh-access.ts';
import { bind, bindWebSocket } from './bind.ts';

export const connectionRoutes = [
  bind(getSshAccess, async (context, { sandbox, signal }) => ({ ssh: await sshAccess(context, sandbox, signal) })),
  bindWebSocket(tunnelToSandbox, 'tunnel', (context, connecting, { port }) => connect(context, connecting, toPort(port))),
  bindWebSocket(terminalInSandbox, 'terminal', (context, connecting, size) => connect(context, connecting, toTerminal(size))),
];
