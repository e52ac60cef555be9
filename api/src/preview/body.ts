// Copies bodies between client and app. Frees the memory of each chunk as soon as it is written.
import type { IncomingMessage, OutgoingMessage, ServerResponse } from 'node:http';
import { FREED_BYTES, freeChunk } from '@berth/protocol/http/free-chunk.ts';

/** Like `from.pipe(to)`. No other code may keep chunks of the message. */
export function pipeBody(from: IncomingMessage, to: OutgoingMessage): void {
  from.on('data', (chunk: Buffer) => {
    if (to.destroyed) return;
    // After a failed write the chunk may still be referenced.
    const hasRoom = to.write(chunk, (error) => {
      if (error === undefined || error === null) freeChunk(chunk);
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
  const stop = (): unknown => socket.off('data', freeChunk);
  socket.on('data', freeChunk);
  from.once('end', stop);
  from.once('close', stop);
}
