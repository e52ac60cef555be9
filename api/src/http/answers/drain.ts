// Closes a connection after its last response while the caller is still sending. With unread or
// later bytes the kernel resets a closed connection, and a caller that sees the reset while writing
// never reads the response. So end only our direction, and drain the input for a while.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { freeChunk } from '@berth/protocol/http/free-chunk.ts';
import { Drains } from './drains.ts';

interface DrainBounds {
  /** Longest time without a byte. */
  silenceMs: number;
  /** Longest time in all. */
  longestMs: number;
  /** Limit of drained bytes. */
  bytes: number;
}

const DRAIN_BOUNDS: DrainBounds = { silenceMs: 5_000, longestMs: 10_000, bytes: 64 * 1_048_576 };

/** Replaces `destroySoon` of a socket that is being drained. */
const drainInProgress = (): void => undefined;

/**
 * Makes `destroySoon()` of the server's connections drain what the caller may still send. Node
 * calls it after a last response (`Connection: close`, HTTP/1.0); call it after responses that
 * Node did not write: to a handshake, or to an unreadable request, whose end is unknown.
 */
export function drainAfterLastResponses(server: Server, bounds: DrainBounds = DRAIN_BOUNDS): void {
  const drains = new Drains();
  const mayFollow = new WeakMap<Socket, () => boolean>();
  for (const event of ['request', 'checkContinue', 'checkExpectation']) {
    server.prependListener(event, (request: IncomingMessage, { shouldKeepAlive }: ServerResponse) =>
      // A caller that keeps its connection may have sent further requests.
      mayFollow.set(request.socket, () => shouldKeepAlive || !request.complete),
    );
  }
  server.prependListener('upgrade', ({ socket }: IncomingMessage) => mayFollow.set(socket, () => true));
  server.prependListener('clientError', (_error, socket: Socket) => mayFollow.set(socket, () => true));

  server.on('connection', (socket: Socket) => {
    const destroySoon = socket.destroySoon.bind(socket);
    socket.destroySoon = () => {
      if (socket.destroyed) return;
      if (mayFollow.get(socket)?.() !== true) return destroySoon();
      socket.destroySoon = drainInProgress;
      drainInput(socket, bounds, drains);
      socket.end();
    };
  });
}

/**
 * Drains the socket until the caller's end or the bounds, once it is its turn. The caller's end
 * closes the connection, as our direction has ended.
 */
function drainInput(socket: Socket, { silenceMs, longestMs, bytes }: DrainBounds, drains: Drains): void {
  const over = (): void => void socket.destroy();
  const longest = setTimeout(over, longestMs);
  let silent: NodeJS.Timeout | undefined;
  const parsers = socket.listeners('data') as ((chunk: Buffer) => void)[];
  let left = bytes;
  socket.pause();
  // Take the bytes from Node's parser: what follows is not a request.
  socket.on('data', (chunk: Buffer) => {
    silent?.refresh();
    left -= chunk.byteLength;
    freeChunk(chunk);
    if (left < 0) over();
  });
  for (const parser of parsers) socket.off('data', parser);
  const leave = drains.enter(() => {
    silent = setTimeout(over, silenceMs);
    socket.resume();
    // When the request was held back, Node's parser stopped reading by other means than pause();
    // only this resumes it.
    socket._read(0);
  }, over);
  socket.once('close', () => {
    clearTimeout(silent);
    clearTimeout(longest);
    leave();
  });
}
