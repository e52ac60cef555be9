// Bodies of a hostile peer: read or passed on up to a number of bytes, never more.
// Must not know whose bodies they are.
import { finished, Readable } from 'node:stream';
import { GatheredBytes } from './gathered-bytes.ts';

export class TooLong extends Error {
  override readonly name = 'TooLong';

  constructor(maxBytes: number) {
    super(`the body is longer than ${maxBytes} bytes`);
  }
}

/**
 * Reads a body. `whole` is false when it broke off. Rejects with {@link TooLong} as soon as the
 * body passes the limit; the rest is left to the caller.
 */
export function gather(body: Readable, maxBytes: number): Promise<{ bytes: Buffer; whole: boolean }> {
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
    // What came before a failure may still explain it.
    body.on('error', settle(false));
    body.on('close', settle(false));
  });
}

/**
 * Passes a body on with backpressure; fails with `asError` of {@link TooLong} or of the failure of
 * the body. Destroying the result destroys the body. Buffered bytes are passed on at once: a peer
 * that cuts its body into single bytes makes no more work than one that does not.
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
  // Whoever reads finds the failure, also when they begin after it.
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
