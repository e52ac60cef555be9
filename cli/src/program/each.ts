// Applies an operation to several ids: tries all, reports each failure, and combines the exit
// codes.
import type { CliContext } from './context.ts';
import { EXIT } from '../output/failure.ts';
import { reportOf } from '../output/report.ts';

interface Work<Result> {
  /** Title of the progress. */
  progressText: string;
  work: (id: string) => Promise<Result>;
  /** Prints one result; called in the order of the arguments. */
  show: (result: Result) => void;
}

/** Maximum number in flight. */
const AT_ONCE = 8;

/** Resolves with the exit code. A single id rethrows its failure. A signal skips the rest. */
export async function runEach<Result>(
  { out, signal, call }: CliContext,
  ids: readonly string[],
  { progressText, work, show }: Work<Result>,
): Promise<number> {
  const all = [...new Set(ids)];
  const [only] = all;
  if (only !== undefined && all.length === 1) {
    show(await out.step(progressText, async () => await work(only)));
    return EXIT.ok;
  }
  const results = new Map<string, { done: Result } | { failed: unknown }>();
  await out.step(`${progressText}, ${all.length} of them`, async (report) => {
    const waiting = [...all];
    const worker = async (): Promise<void> => {
      for (let id = waiting.shift(); id !== undefined && !signal.aborted; id = waiting.shift()) {
        try {
          results.set(id, { done: await work(id) });
        } catch (error) {
          results.set(id, { failed: error });
        }
        report(`${results.size} done`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  });
  const codes = new Set<number>();
  for (const id of all) {
    const result = results.get(id);
    if (result === undefined) continue;
    if ('done' in result) {
      show(result.done);
      continue;
    }
    if (signal.aborted && result.failed === signal.reason) continue;
    const { exitCode, lines } = reportOf(result.failed, { about: id, call });
    codes.add(exitCode);
    lines.forEach((line) => out.hint(line));
  }
  signal.throwIfAborted();
  const [code = EXIT.ok] = codes;
  return codes.size > 1 ? EXIT.failed : code;
}
