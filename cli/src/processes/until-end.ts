// Output of a process until the process ends, even if other programs can still write to it.
import type { BerthError, ProcessEnd, ProcessOutput, SandboxProcess } from '@berth/sdk';

interface UntilEnd {
  /** Begins with so many of the last bytes of each stream. */
  tail: number;
  signal: AbortSignal;
  onRetry: (error: BerthError) => void;
}

/** Returns the end of the process. */
export async function* outputUntilEnd(
  process: SandboxProcess,
  { tail, signal, onRetry }: UntilEnd,
): AsyncGenerator<ProcessOutput, ProcessEnd, undefined> {
  const ended = new AbortController();
  const end = process.wait({ signal }).finally(() => ended.abort());
  end.catch(() => undefined);
  let since: string | undefined;
  try {
    const following = AbortSignal.any([signal, ended.signal]);
    for await (const chunk of process.output({ tail, signal: following, onRetry })) {
      yield chunk;
      since = chunk.cursor;
    }
  } catch (error) {
    if (!ended.signal.aborted) throw error;
    // Throws if the wait failed.
    await end;
    for await (const chunk of process.output({ since, tail, follow: false, signal, onRetry })) yield chunk;
  }
  return await end;
}
