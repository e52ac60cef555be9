// `berth shell`: this terminal becomes one of the login shell of a sandbox, through the API. Needs
// no ssh, neither here nor there.
import { terminalInSandbox } from '@berth/contract/terminal.ts';
import { joinTerminal, sizeOf } from '../connection/joined-terminal.ts';
import { openApiWebSocket } from '../connection/websocket.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../failure.ts';
import { sandboxId } from '../sandbox-id.ts';
import type { Input } from '../spec.ts';

/** Resolves with the exit code of the shell. */
export async function shell({ connect, signal, stdin, stdout }: CliContext, { args: [typed] }: Input): Promise<number> {
  const id = sandboxId(typed);
  if (!stdin.isTTY || !stdout.isTTY) {
    throw new UsageError('this needs a terminal, for input and output', {
      remedy: `berth exec ${id} -- COMMAND runs a command without one`,
    });
  }
  const { cols, rows } = sizeOf(stdout);
  const target = { route: terminalInSandbox, sandboxId: id, query: { cols: String(cols), rows: String(rows) } };
  const socket = await openApiWebSocket(await connect(), target, signal);
  return await joinTerminal(socket, { stdin, stdout }, signal);
}
