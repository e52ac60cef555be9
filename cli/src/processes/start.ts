// `berth exec -d`: starts a process.
import { programOptions, type ProgramOptions } from '../connections/program-options.ts';
import { sizeOf } from '../connections/joined-terminal.ts';
import type { CliContext } from '../program/context.ts';
import { processesOf } from './find.ts';

interface StartInput extends ProgramOptions {
  interactive?: true;
  tty?: true;
  timeoutSeconds?: number;
  name?: string;
  keepAwake?: true;
}

/** Prints the id. @param words a shell line, or several exact arguments */
export async function startProcess(
  context: CliContext,
  { sandboxId, words }: { sandboxId: string; words: readonly string[] },
  options: StartInput,
): Promise<void> {
  const { out, signal, stdout } = context;
  const { interactive, tty, timeoutSeconds, name, keepAwake } = options;
  const processes = await processesOf(context, sandboxId);
  const [line = ''] = words;
  const { id, data } = await processes.start(words.length > 1 ? words : line, {
    signal,
    ...(interactive === true ? { stdin: true } : {}),
    ...(tty === true ? { tty: true, ...sizeOf(stdout) } : {}),
    ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }),
    ...programOptions(options),
    ...(name === undefined ? {} : { name }),
    ...(keepAwake === undefined ? {} : { keepAwake }),
  });
  if (out.json) {
    out.object({ process: data });
    return;
  }
  out.line(id);
  if (stdout.isTTY) out.hint(`berth: follow its output with berth logs -f ${sandboxId} ${id}`);
}
