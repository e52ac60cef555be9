// Bodies of a hostile peer: read or passed on up to a number of bytes, never more.
// Must not know whose bodies they are.
import { Transform, pipeline, type Readable } from 'node:stream';

export class TooLong extends Error {
  override readonly name = 'TooLong';

  constructor(maxBytes: number) {
    super(`the body is longer than ${maxBytes} bytes`);
  }
}

/** The whole body as text. Rejects with {@link TooLong}, and stops reading, once it passes the limit; a stream is destroyed then. */
export async function readAtMost(body: AsyncIterable<Buffer>, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) {
      throw new TooLong(maxBytes);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * The body as it comes, with backpressure; fails with what `asError` makes of {@link TooLong} or of the body's own failure. Destroying the result
 * destroys the body.
 */
export function atMost(body: Readable, maxBytes: number, asError: (error: unknown) => Error): Readable {
  let bytes = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, callback) {
      bytes += chunk.length;
      callback(bytes > maxBytes ? new TooLong(maxBytes) : null, chunk);
    },
    destroy(error, callback) {
      callback(error === null ? null : asError(error));
    },
  });
  // Both ends are joined: whichever fails or is destroyed takes the other with it. The reader of the result sees the failure there.
  pipeline(body, counted, () => undefined);
  return counted;
}
