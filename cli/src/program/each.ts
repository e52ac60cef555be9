// The same done to each of what was named: all are tried, each failure is told with its name, and
// the exit code says whether any failed.
import type { CliContext } from './context.ts';
import { EXIT } from '../output/failure.ts';
import { tell } from '../output/report.ts';

interface Work<Result> {
  /** As progress shows it. */
  doing: string;
  /** Does it to one. */
  work: (id: string) => Promise<Result>;
  /** Says what came of one, in the order in which they were named. */
  show: (result: Result) => void;
}

/** How many are under way at once. */
const AT_ONCE = 8;

/**
 * Resolves with the exit code; throws what went wrong when there was only one to do. What ends it
 * early leaves the rest undone.
 */
export async function doEach<Result>(
  { out, signal }: CliContext,
  ids: readonly string[],
  { doing, work, show }: Work<Result>,
): Promise<number> {
  const all = [...new Set(ids)];
  const [only] = all;
  if (only !== undefined && all.length === 1) {
    show(await out.step(doing, async () => await work(only)));
    return EXIT.ok;
  }
  const results = new Map<string, { done: Result } | { failed: unknown }>();
  await out.step(`${doing}, ${all.length} of them`, async (report) => {
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
    const { exitCode, lines } = tell(result.failed, { about: id });
    codes.add(exitCode);
    lines.forEach((line) => out.note(line));
  }
  signal.throwIfAborted();
  const [code = EXIT.ok] = codes;
  return codes.size > 1 ? EXIT.failed : code;
}
