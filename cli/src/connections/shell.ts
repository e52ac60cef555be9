// `berth shell`: this terminal becomes one of the login shell of a sandbox, through the API. Needs
// no ssh, neither here nor there.
import { joinTerminal, sizeOf } from './joined-terminal.ts';
import { streamsOf } from './streams.ts';
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { sandboxId } from '../service/resource-id.ts';
import type { Input } from '../program/command-spec.ts';

/** Resolves with the exit code of the shell. */
export async function shell({ connect, signal, stdin, stdout }: CliContext, { args: [typed] }: Input): Promise<number> {
  const id = sandboxId(typed);
  if (!stdin.isTTY || !stdout.isTTY) {
    throw new UsageError('this needs a terminal, for input and output', {
      remedy: `berth exec ${id} -- COMMAND runs a command without one`,
    });
  }
  const terminal = await streamsOf(await connect(), id).terminal({ ...sizeOf(stdout), signal });
  return await joinTerminal(terminal, { stdin, stdout });
}
