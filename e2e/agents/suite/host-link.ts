// The connection between API and host daemon, which can hold a message back and deliver it later.
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { buffer, json } from 'node:stream/consumers';

interface Held {
  incoming: Pick<IncomingMessage, 'method' | 'url' | 'headers'>;
  body: Buffer;
}

/** A message to a guest that has not arrived. */
interface LateMessage {
  /** Delivers it; resolves with the host's response. */
  deliver(): Promise<{ status: number; body: unknown }>;
}

export class HostLink {
  readonly #server: Server;
  readonly #hostSocket: string;
  #holding: PromiseWithResolvers<LateMessage> | null = null;

  private constructor(hostSocket: string) {
    this.#hostSocket = hostSocket;
    this.#server = createServer((incoming, outgoing) => {
      this.#serve(incoming, outgoing).catch(() => outgoing.destroy());
    });
  }

  static async start(socket: string, hostSocket: string): Promise<HostLink> {
    const link = new HostLink(hostSocket);
    link.#server.listen(socket);
    await once(link.#server, 'listening');
    return link;
  }

  /** Holds the next message to an agent; its call breaks off. */
  holdMessage(): Promise<LateMessage> {
    this.#holding = Promise.withResolvers();
    return this.#holding.promise;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await buffer(incoming);
    const holding = this.#holding;
    if (holding !== null && /\/agents\/\w+\/messages$/.test(incoming.url ?? '')) {
      this.#holding = null;
      const held = { incoming, body };
      holding.resolve({
        deliver: async () => {
          const response = await this.#forward(held);
          return { status: response.statusCode ?? 0, body: await json(response) };
        },
      });
      outgoing.destroy();
      return;
    }
    const gone = new AbortController();
    outgoing.once('close', () => gone.abort());
    const response = await this.#forward({ incoming, body }, gone.signal);
    outgoing.writeHead(response.statusCode ?? 502, response.headers);
    outgoing.flushHeaders();
    response.once('error', () => outgoing.destroy()).pipe(outgoing);
  }

  async #forward({ incoming, body }: Held, signal?: AbortSignal): Promise<IncomingMessage> {
    const { method, url, headers } = incoming;
    const outgoing = request({
      ...{ socketPath: this.#hostSocket, method, path: url, headers, agent: false },
      ...(signal === undefined ? {} : { signal }),
    });
    outgoing.end(body);
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    return response;
  }
}
