// Copies bodies between client and app. Frees the memory of each chunk as soon as it is written:
// garbage collection would be most of the work of a long body.
import type { IncomingMessage, OutgoingMessage, ServerResponse } from 'node:http';

/** Smaller chunks are left to the garbage collector. */
const FREED_BYTES = 16_384;

/** Like `from.pipe(to)`. No other code may keep chunks of the message. */
export function pipeBody(from: IncomingMessage, to: OutgoingMessage): void {
  from.on('data', (chunk: Buffer) => {
    if (to.destroyed) return;
    // After a failed write the chunk may still be referenced.
    const hasRoom = to.write(chunk, (error) => {
      if (error === undefined || error === null) free(chunk);
    });
    if (!hasRoom) from.pause();
  });
  to.on('drain', () => from.resume());
  // Without a destination, drain the source so that its connection reaches the end of the message.
  to.once('close', () => from.resume());
  from.once('end', () => to.end());
}

/** Like {@link pipeBody}, and also frees the memory of socket reads. */
export function pipeResponse(from: IncomingMessage, to: ServerResponse): void {
  pipeBody(from, to);
  if (Number(from.headers['content-length']) < FREED_BYTES) return;
  const { socket } = from;
  // Runs after the parser's own listener; the parser hands out copies. Removed before the next
  // response on this connection, whose parser would run after this listener.
  const stop = (): unknown => socket.off('data', free);
  socket.on('data', free);
  from.once('end', stop);
  from.once('close', stop);
}

/** Frees a chunk that fills its buffer. Node's pooled small buffers share theirs. */
function free({ buffer, byteLength }: Uint8Array): void {
  if (byteLength >= FREED_BYTES && byteLength === buffer.byteLength && buffer instanceof ArrayBuffer)
    buffer.transfer(0);
}
