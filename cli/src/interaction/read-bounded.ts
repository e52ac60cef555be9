// Reads input of a bounded size.
import type { Readable } from 'node:stream';

/** Throws the failure if there are more bytes, and the signal's reason if it aborts. */
export async function readBounded(
  input: Readable,
  signal: AbortSignal,
  { bytes: most, failure }: { bytes: number; failure: () => Error },
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const stop = (): void => void input.destroy(signal.reason as Error);
  signal.addEventListener('abort', stop, { once: true });
  try {
    for await (const chunk of input as AsyncIterable<Buffer>) {
      bytes += chunk.byteLength;
      if (bytes > most) throw failure();
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
