// `berth shell`: opens a login shell through the API, without ssh.
import { joinTerminal, sizeOf } from './joined-terminal.ts';
import { streamsOf } from './streams.ts';
import { shellWord } from '@berth/machine/output/command-hint.ts';
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import type { Input } from '../program/command-spec.ts';

export async function shell(context: CliContext, { args: [typed = ''] }: Input): Promise<number> {
  const { connect, signal, stdin, stdout } = context;
  if (!stdin.isTTY || !stdout.isTTY) {
    throw new UsageError('a shell requires a terminal for stdin and stdout', {
      remedy: `berth exec ${shellWord(plainText(typed))} -- COMMAND runs a command without a terminal`,
    });
  }
  const id = await findSandbox(context, typed);
  const terminal = await streamsOf(await connect(), id).terminal({ ...sizeOf(stdout), signal });
  return await joinTerminal(terminal, { stdin, stdout });
}
