// How a connection ends whose caller is still sending when its last answer is given. To close it is
// to reset it: the kernel does so when bytes have arrived that nobody read, or arrive afterwards,
// and a caller that learns of it while writing never reads the answer. So our direction ends behind
// the answer, and what still comes is read and thrown away for a while. Must not know what was
// asked.
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

interface LastAnswerBounds {
  /** Longest time without a byte. */
  silenceMs: number;
  /** Longest time in all. */
  longestMs: number;
  /** What is read at most. */
  bytes: number;
}

const AFTER_LAST_ANSWER: LastAnswerBounds = { silenceMs: 5_000, longestMs: 10_000, bytes: 64 * 1_048_576 };

/** Replaces `destroySoon` of a socket that is ending: it closes within the bounds. */
const closesByItself = (): void => undefined;

/**
 * Lets connections of the server end so, of which Node writes the last answer (`Connection: close`,
 * HTTP/1.0): it closes them by `destroySoon()`.
 */
export function endBehindLastAnswers(server: Server, bounds: LastAnswerBounds = AFTER_LAST_ANSWER): void {
  const latest = new WeakMap<Socket, IncomingMessage>();
  for (const event of ['request', 'checkContinue', 'checkExpectation', 'upgrade'])
    server.prependListener(event, (request: IncomingMessage) => void latest.set(request.socket, request));

  server.on('connection', (socket: Socket) => {
    const destroySoon = socket.destroySoon.bind(socket);
    socket.destroySoon = () => {
      if (latest.get(socket)?.complete === false) endBehindAnswer(socket, bounds);
      else destroySoon();
    };
  });
}

/**
 * The same for an answer that somebody else wrote: to a handshake, or to what cannot be read, of
 * which nobody knows where it ends.
 */
export function endBehindAnswer(socket: Socket, bounds: LastAnswerBounds = AFTER_LAST_ANSWER): void {
  if (socket.destroySoon === closesByItself || socket.destroyed) return;
  socket.destroySoon = closesByItself;
  listenOn(socket, bounds);
  socket.end();
}

/**
 * Reads and throws away. It ends with the caller's own end, which closes the connection as ours has
 * come before, or with the bounds.
 */
function listenOn(socket: Socket, { silenceMs, longestMs, bytes }: LastAnswerBounds): void {
  const over = (): void => void socket.destroy();
  const silent = setTimeout(over, silenceMs);
  const longest = setTimeout(over, longestMs);
  socket.once('close', () => {
    clearTimeout(silent);
    clearTimeout(longest);
  });
  const parsers = socket.listeners('data') as ((chunk: Buffer) => void)[];
  let left = bytes;
  // The first of these takes the bytes from Node's parser: what comes behind is no request any
  // more.
  socket.on('data', (chunk: Buffer) => {
    silent.refresh();
    left -= chunk.byteLength;
    if (left < 0) over();
  });
  for (const parser of parsers) socket.off('data', parser);
  socket.resume();
  // Where the request was held back Node had stopped reading by a way of the parser's, which knows
  // of no going on without it.
  socket._read(0);
}
