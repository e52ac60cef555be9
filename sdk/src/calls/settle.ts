// Polls a sandbox until it has a wanted status: after 100 ms, then less often, at most every 2 s.
import type { Sandbox as SandboxData } from '../generated/raw/index.ts';
import { BerthError, errorWith } from '../transport/errors.ts';
import { Backoff, Deadline } from '../transport/time.ts';
import type { CallOptions } from '../transport/transport.ts';
import { isOver, isSettled, matcherOf, shown, type Awaited } from './wanted-status.ts';

interface Polled {
  readonly id: string;
  readonly data: SandboxData;
  refresh(options: CallOptions): Promise<unknown>;
}

/**
 * Resolves with the sandbox once it has the status, beginning with its last response. Rejects with
 * `unexpected_status` and the service's reason if it settled in another one.
 * @param options `startedMs`: start of the timeout @param begun the last response started the
 * transition: any other settled status is a failure
 */
export async function settle<S extends Polled>(
  sandbox: S,
  wanted: Awaited,
  { startedMs, signal, timeoutMs }: { startedMs: number; timeoutMs: number; signal: CallOptions['signal'] },
  begun: boolean,
): Promise<S> {
  const isThere = matcherOf(wanted);
  const statusOf = (): SandboxData['status'] => sandbox.data.status;
  const left = Math.max(1, timeoutMs - (Date.now() - startedMs));
  const what = `waiting for sandbox ${sandbox.id} to be ${shown(wanted)}, which was ${statusOf()},`;
  const deadline = new Deadline(left, what, [signal]);
  const backoff = new Backoff();
  let lost: BerthError | undefined;
  try {
    let wasMoving = begun;
    while (!isThere(sandbox.data)) {
      if (isOver(statusOf()) || (wasMoving && isSettled(statusOf()))) throw unexpected(sandbox, wanted);
      wasMoving ||= !isSettled(statusOf());
      await backoff.pause(lost?.retryAfter, deadline.signal);
      lost = await poll(sandbox, deadline.signal);
    }
    return sandbox;
  } catch (error) {
    throw signal?.aborted === true ? error : named(sandbox, error, lost);
  } finally {
    deadline.end();
  }
}

/**
 * Refreshes once. Returns a failure that passes, such as a restart of the service: the transition
 * continues without connections.
 */
async function poll(sandbox: Polled, signal: AbortSignal): Promise<BerthError | undefined> {
  try {
    await sandbox.refresh({ signal });
    return undefined;
  } catch (error) {
    const passes = error instanceof BerthError && (error.retryable || error.code === 'timeout');
    if (!passes || signal.aborted) throw error;
    return error;
  }
}

/** Adds the sandbox's id, and the failure of the last poll, to an error of the SDK. */
function named({ id }: Polled, error: unknown, lost: BerthError | undefined): unknown {
  if (!(error instanceof BerthError)) return error;
  const more = lost === undefined ? '' : `; the last poll failed: ${lost.message}`;
  return errorWith(error, { sandboxId: id, cause: lost ?? error.cause }, error.message + more);
}

function unexpected({ id, data: { status, statusReason } }: Polled, wanted: Awaited): BerthError {
  const why = statusReason === null ? '' : `: ${statusReason.message} (${statusReason.code})`;
  return new BerthError(`sandbox ${id} is ${status}, not ${shown(wanted)}${why}`, { code: 'unexpected_status' });
}
