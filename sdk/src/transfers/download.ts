// Ranges of a download, and the check of its length.
import { BerthError } from '../transport/errors.ts';
import type { CallOptions } from '../transport/transport.ts';

export interface DownloadOptions extends Pick<CallOptions, 'signal'> {
  /** Offset of the first byte, by default 0. */
  from?: number;
  /** Number of bytes; fewer at the end of the file. By default all that follow. */
  length?: number;
  /** Number of bytes at the end of the file, instead of `from` and `length`. */
  last?: number;
  /** `etag` of an earlier download: if the file has changed since, its whole content is sent. */
  ifRange?: string;
}

export function rangeHeaders({ from = 0, length, last, ifRange }: DownloadOptions): Record<string, string> {
  const numbers = { from, length, last };
  for (const [name, value] of Object.entries(numbers)) {
    if (value !== undefined && (!Number.isSafeInteger(value) || value < (name === 'from' ? 0 : 1)))
      throw new BerthError(`${name} must be a whole number of bytes: ${value}`, { code: 'configuration' });
  }
  const whole = from === 0 && length === undefined && last === undefined;
  if (whole) return {};
  const range = last === undefined ? `${from}-${length === undefined ? '' : from + length - 1}` : `-${last}`;
  return { range: `bytes=${range}`, ...(ifRange === undefined ? {} : { 'if-range': ifRange }) };
}

/** The stream, which fails unless it has so many bytes. */
export function exactly(
  path: string,
  length: number,
  content: ReadableStream<Uint8Array>,
  signal: AbortSignal | undefined,
): ReadableStream<Uint8Array> {
  const reader = content.getReader();
  let left = length;
  const broken = (cause?: unknown): unknown =>
    signal?.aborted === true
      ? signal.reason
      : new BerthError(`${path}: the content broke off`, { code: 'connection_failed', retryable: true, cause });
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const { done, value } = await reader.read().catch((error: unknown) => {
        throw broken(error);
      });
      if (done && left !== 0) throw broken();
      if (done) return controller.close();
      left -= value.length;
      controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
