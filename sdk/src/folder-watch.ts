// Changes below a folder, as they happen.
import { afterFailure } from './calls/asleep.ts';
import type { Calls } from './calls/calls.ts';
import { HOLD_SECONDS } from './generated/limits.ts';
import type { FileChange } from './generated/raw/index.ts';
import type { BerthError } from './transport/errors.ts';
import { held, whileHeld } from './transport/held.ts';
import { Pauses } from './transport/pauses.ts';
import type { CallOptions } from './transport/transport.ts';

/** All of the folder may have changed: list it anew. The first event, and after missed changes. */
export interface FolderReset {
  /** The watched folder. */
  path: string;
  change: 'reset';
  kind: 'directory';
}

export type FolderEvent = FileChange | FolderReset;

export interface WatchOptions extends Pick<CallOptions, 'signal'> {
  /** Also folders below; by default false. */
  recursive?: boolean;
  /** Called before each repetition of a failed request, also while the sandbox sleeps. */
  onRetry?: (error: BerthError) => void;
}

/** A response of this many changes is followed by others. */
const WHOLE = 500;

export async function* watchFolder(
  calls: Calls,
  sandboxId: string,
  path: string | undefined,
  { recursive = false, signal = new AbortController().signal, onRetry }: WatchOptions,
): AsyncGenerator<FolderEvent, never, undefined> {
  const { raw, with: set } = calls;
  const folder = { ...(path === undefined ? {} : { path }), ...(recursive ? ({ recursive: 'true' } as const) : {}) };
  const at = { sandboxId };
  // Not repeated beyond the client's retries: it uses the sandbox.
  const first = await raw.watchFiles({ path: at, query: folder, ...set({ signal }) });
  const reset: FolderReset = { path: first.path, change: 'reset', kind: 'directory' };
  yield reset;
  let { cursor } = first;
  const pauses = new Pauses(signal, onRetry);
  const seconds = HOLD_SECONDS.max;
  for (;;) {
    signal.throwIfAborted();
    const startedMs = Date.now();
    const settings = { ...held(seconds), ...set(whileHeld(seconds, { signal })) };
    const found = await raw
      .watchFiles({ path: at, query: { ...folder, cursor }, ...settings })
      .catch((error: unknown) => afterFailure(calls, sandboxId, error, { pauses, signal }));
    // Failed.
    if (found === undefined) continue;
    const tookMs = Date.now() - startedMs;
    const { changes } = found;
    if (found.reset) yield reset;
    yield* changes;
    ({ cursor } = found);
    if (changes.length === 0) await pauses.after(false, tookMs);
    else await pauses.afterPart(changes.length > WHOLE);
  }
}
