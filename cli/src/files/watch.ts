// `berth files watch`: prints changes below a folder until Ctrl-C.
import { exitCodeOf } from '../interaction/repeat.ts';
import { plainText } from '../output/plain-text.ts';
import { Interruptions } from '../processes/interruptions.ts';
import type { Input } from '../program/command-spec.ts';
import type { CliContext } from '../program/context.ts';
import { findSandbox } from '../service/find-sandbox.ts';

/** Width of the longest change. */
const CHANGE_CELLS = 'created'.length;

/** Resolves with the exit code of the signal. */
export async function watchFolder(
  context: CliContext,
  { args: [typed, path], options: { recursive = false } }: Input<{ recursive?: boolean }>,
): Promise<number> {
  const { connect, out, signal } = context;
  const sandboxId = await findSandbox(context, typed);
  const { berth } = await connect();
  const interruptions = new Interruptions(sandboxId, (text) => out.note(text), 'watch');
  const { files } = await berth.sandboxes.get(sandboxId, { signal });
  const onRetry = interruptions.failed.bind(interruptions);
  try {
    for await (const event of files.watch(path, { recursive, signal, onRetry })) {
      interruptions.over();
      if (out.json) {
        out.objectLine(event);
        continue;
      }
      const name = event.kind === 'directory' && event.path !== '/' ? `${event.path}/` : event.path;
      out.line(`${event.change.padEnd(CHANGE_CELLS)} ${plainText(name)}`);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return exitCodeOf(signal);
}
