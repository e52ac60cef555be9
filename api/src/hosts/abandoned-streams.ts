// Reports the streams that this process has closed to their host, which may be unable to notice.
// One call at a time; streams closed meanwhile share the next.
import { CLOSED_STREAMS, closeStreams } from '@berth/protocol/calls/connections.ts';

type Send = (call: typeof closeStreams, request: { body: { streams: string[] } }) => Promise<unknown>;

export class AbandonedStreams {
  readonly #send: Send;
  readonly #names: string[] = [];
  #sending = false;

  constructor(send: Send) {
    this.#send = send;
  }

  /** `name`: id of the stream at the host. */
  add(name: string): void {
    this.#names.push(name);
    if (!this.#sending) void this.#sendAll();
  }

  async #sendAll(): Promise<void> {
    this.#sending = true;
    while (this.#names.length > 0) {
      const body = { streams: this.#names.splice(0, CLOSED_STREAMS) };
      // The host also closes a stream by itself after a time of silence.
      await this.#send(closeStreams, { body }).catch(() => undefined);
    }
    this.#sending = false;
  }
}
