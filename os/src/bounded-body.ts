// Bodies of a hostile peer: read or passed on up to a number of bytes, never more.
// Must not know whose bodies they are.
import { finished, Readable } from 'node:stream';

export class TooLong extends Error {
  override readonly name = 'TooLong';

  constructor(maxBytes: number) {
    super(`the body is longer than ${maxBytes} bytes`);
  }
}

/**
 * The whole body as text. Rejects with {@link TooLong}, and stops reading, once it passes the
 * limit; a stream is destroyed then.
 */
export async function readAtMost(body: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new TooLong(maxBytes);

    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * The body as it comes, with backpressure; fails with what `asError` makes of {@link TooLong} or of
 * the body's own failure. Destroying the result destroys the body. What has come is passed on at
 * once: a peer that cuts its body into single bytes makes no more work of it than one that does
 * not.
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
