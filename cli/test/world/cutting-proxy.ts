// A TCP proxy before the service of a test, which cuts connections after given numbers of bytes.
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export class CuttingProxy {
  /** Values of `passed` at which the connection that reaches them is cut. */
  cuts: number[] = [];
  /** Called with `passed` after each change. */
  onPassed: (bytes: number) => void = () => undefined;
  /** Bytes in both directions. */
  passed = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(port: number) {
    this.#server = createServer((client) => this.#join(client, connect(port, '127.0.0.1')));
  }

  /** @param url of the service */
  static async start(url: string): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(Number(new URL(url).port));
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #join(client: Socket, service: Socket): void {
    for (const socket of [client, service]) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => {
        this.#sockets.delete(socket);
        client.destroy();
        service.destroy();
      });
    }
    for (const [from, to] of [
      [client, service],
      [service, client],
    ] as const) {
      from.on('data', (chunk) => {
        this.passed += chunk.length;
        this.onPassed(this.passed);
        if (this.passed >= (this.cuts[0] ?? Infinity)) {
          this.cuts.shift();
          from.destroy();
        } else if (!to.write(chunk)) {
          from.pause();
          to.once('drain', () => from.resume());
        }
      });
      from.once('end', () => to.end());
    }
  }
}
