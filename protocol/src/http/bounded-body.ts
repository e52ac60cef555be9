// Bodies of a hostile peer: read or forwarded up to a byte limit. Must not know their content.
import { finished, Readable } from 'node:stream';
import { GatheredBytes } from './gathered-bytes.ts';

export class TooLong extends Error {
  override readonly name = 'TooLong';

  constructor(maxBytes: number) {
    super(`the body is longer than ${maxBytes} bytes`);
  }
}

/**
 * Returns the body. Beyond the limit it stops collecting and rejects with {@link TooLong}; the
 * caller destroys the body or lets it drain.
 */
export function readBounded(body: Readable, maxBytes: number): Promise<{ bytes: Buffer; whole: boolean }> {
  return new Promise((resolve, reject) => {
    const gathered = new GatheredBytes();
    const onData = (piece: Buffer): void => {
      if (gathered.length + piece.length <= maxBytes) {
        gathered.add(piece);
        return;
      }
      body.off('data', onData);
      reject(new TooLong(maxBytes));
    };
    const settle = (whole: boolean) => (): void => resolve({ bytes: gathered.whole(), whole });
    body.on('data', onData);
    body.on('end', settle(true));
    // Data before a failure may explain it.
    body.on('error', settle(false));
    body.on('close', settle(false));
  });
}

/** As {@link readBounded}, but a longer body is destroyed: its peer could send for ever. */
export async function readOrDestroy(body: Readable, maxBytes: number): Promise<{ bytes: Buffer; whole: boolean }> {
  try {
    return await readBounded(body, maxBytes);
  } catch (error) {
    body.destroy();
    throw error;
  }
}

/**
 * Forwards the body with back-pressure; fails with `asError` of {@link TooLong} or of the body's
 * own failure. Destroying the result destroys the body. Buffered data is forwarded at once: single
 * bytes cost no more than large chunks.
 */
export function atMost(body: Readable, maxBytes: number, asError: (error: unknown) => Error): Readable {
  let bytes = 0;
  let wanted = false;
  const pass = (): void => {
    const chunk = body.read() as Buffer | null;
    wanted = chunk === null;
    if (chunk === null) return;

    bytes += chunk.length;
    if (bytes > maxBytes) counted.destroy(new TooLong(maxBytes));
    else counted.push(chunk);
  };
  const counted = new Readable({
    read: pass,
    destroy(error, callback) {
      if (!body.readableEnded) body.destroy();

      callback(error === null ? null : asError(error));
    },
  });
  // Prevents an unhandled error: readers see the failure, even late ones.
  counted.on('error', () => undefined);
  body.on('readable', () => {
    if (wanted) pass();
  });
  finished(body, { writable: false }, (error) => {
    if (error) counted.destroy(error);
    else counted.push(null);
  });
  return counted;
}
