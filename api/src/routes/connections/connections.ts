// Wire format of connections into sandboxes, and of the facts an ssh client needs.
import { getSshAccess } from '@berth/contract/connections/ssh.ts';
import { terminalInSandbox, type TerminalQuery } from '@berth/contract/connections/terminal.ts';
import { tunnelToSandbox } from '@berth/contract/connections/tunnel.ts';
import type { TerminalAsked } from '@berth/protocol/calls/connections.ts';
import { toAgentTerminal } from '../../services/agents/terminal.ts';
import { connect, toPort, toTerminal } from '../../services/connections/connections.ts';
import { sshAccess } from '../../services/connections/ssh-access.ts';
import { bind, bindWebSocket } from '../../call/bind.ts';

export const connectionRoutes = [
  bind(getSshAccess, async (context, { sandbox, signal }) => ({ ssh: await sshAccess(context, sandbox, signal) })),
  bindWebSocket(
    tunnelToSandbox,
    () => 'tunnel',
    (context, connecting, { port }) => connect(context, connecting, toPort(port)),
  ),
  bindWebSocket(
    terminalInSandbox,
    (query) => (query.tty === 'true' ? 'terminal' : 'command'),
    (context, connecting, query) => {
      const target =
        query.agent === 'true'
          ? toAgentTerminal(context, connecting.actor, { cols: query.cols, rows: query.rows })
          : toTerminal(terminalRequestOf(query), query.env);
      return connect(context, connecting, target, query.mayWake === 'true');
    },
  ),
];

function terminalRequestOf({ command, tty, cols, rows, cwd, user }: TerminalQuery): TerminalAsked {
  if (tty === 'true') return { tty: true, cols, rows, command: command ?? null, cwd, user };
  if (command === undefined) throw new Error('validation accepted a query without terminal and command');
  return { tty: false, command, cwd, user };
}
