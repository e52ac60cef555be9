// Bodies on their way between a visitor and an app. The memory of what has been written is given
// back at once: left to the collector, it is most of the work of a long one.
import type { IncomingMessage, OutgoingMessage, ServerResponse } from 'node:http';
import { Stream } from 'node:stream';

/** Less memory than this is not worth the while. */
const FREED_BYTES = 16_384;

/** As `from.pipe(to)`, for a message of which nobody else keeps anything. */
export function passBody(from: IncomingMessage, to: OutgoingMessage): void {
  from.on('data', (part: Buffer) => {
    if (to.destroyed) return;
    // When it failed, whoever was to write it may still hold it.
    const goesOn = to.write(part, (error) => {
      if (error === undefined || error === null) free(part);
    });
    if (!goesOn) from.pause();
  });
  to.on('drain', () => from.resume());
  // Where the other side is gone what still comes is thrown away, so that the connection comes to
  // the end of it.
  to.once('close', () => from.resume());
  from.once('end', () => to.end());
}

/** The same for an answer, freeing what it is read into, too. */
export function passAnswer(answer: IncomingMessage, response: ServerResponse): void {
  passBody(answer, response);
  if (Number(answer.headers['content-length']) < FREED_BYTES) return;
  const { socket } = answer;
  // Behind the parser's own listener: what the parser hands out is a copy. Before the next request
  // on this connection, whose parser would come behind this one.
  const over = (): unknown => socket.off('data', free);
  socket.on('data', free);
  answer.once('end', over);
  answer.once('close', over);
}

/** Unless there is more in the same memory, as in that which Node keeps for small buffers. */
function free({ buffer, byteLength }: Uint8Array): void {
  if (byteLength >= FREED_BYTES && byteLength === buffer.byteLength && buffer instanceof ArrayBuffer)
    buffer.transfer(0);
}

/**
 * A visitor's body, in the one way in which the library takes it: as something to be piped into the
 * request that it makes.
 */
export class VisitorsBody extends Stream {
  readonly #request: IncomingMessage | null;

  /** Null: there is none. */
  constructor(request: IncomingMessage | null) {
    super();
    this.#request = request;
  }

  override pipe<T extends NodeJS.WritableStream>(outgoing: T): T;
  override pipe(outgoing: OutgoingMessage): OutgoingMessage {
    if (this.#request === null) outgoing.end();
    else passBody(this.#request, outgoing);
    return outgoing;
  }
}
export const NO_BODY = new VisitorsBody(null);
