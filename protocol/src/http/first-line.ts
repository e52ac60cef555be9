// The first line of a stream whose other bytes are content. Imports only Node modules: the guest
// daemon bundles it.
import type { Readable } from 'node:stream';

/**
 * Reads up to the first line feed; the rest stays in the stream, which is paused. Rejects when the
 * line is longer or the stream ends before the line does.
 */
export function firstLine(stream: Readable, maxBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let held: Buffer = Buffer.alloc(0);
    const onData = (chunk: Buffer): void => {
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      const end = held.indexOf(10);
      if (end >= 0) {
        stream.off('data', onData);
        stream.pause();
        if (held.length > end + 1) stream.unshift(held.subarray(end + 1));

        resolve(held.toString('latin1', 0, end));
      } else if (held.length > maxBytes) {
        stream.destroy(new Error('the first line of the stream violates its protocol'));
      }
    };
    stream.on('data', onData).resume();
    // Stays attached: the reader of the rest adds its own error listener.
    stream.on('error', reject);
    const ended = (): void => reject(new Error('the stream ended before its first line'));
    stream.once('end', ended).once('close', ended);
  });
}
