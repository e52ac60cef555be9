// `berth shell`: opens a login shell through the API, without ssh.
import { joinTerminal, sizeOf } from './joined-terminal.ts';
import { streamsOf } from './streams.ts';
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { sandboxId } from '../service/resource-id.ts';
import type { Input } from '../program/command-spec.ts';

export async function shell({ connect, signal, stdin, stdout }: CliContext, { args: [typed] }: Input): Promise<number> {
  const id = sandboxId(typed);
  if (!stdin.isTTY || !stdout.isTTY) {
    throw new UsageError('a shell requires a terminal for stdin and stdout', {
      remedy: `berth exec ${id} -- COMMAND runs a command without a terminal`,
    });
  }
  const terminal = await streamsOf(await connect(), id).terminal({ ...sizeOf(stdout), signal });
  return await joinTerminal(terminal, { stdin, stdout });
}
