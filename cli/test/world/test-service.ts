// The SDK's test server on a local port, and berth runs against it in pipes and terminals.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Sandbox } from '@berth/sdk';
import { TestServer, type TestServerOptions } from '@berth/sdk/testing';
import { PseudoTerminal } from '../../../os/test/pseudo-terminal.ts';
import { berth, cleanEnvironment, MAIN, startBerth, type BerthOptions, type Ended } from './berth.ts';

interface TerminalOptions {
  columns?: number;
  /** Shell line with the program as "$0" and its arguments as "$@". */
  line?: string;
}

export class TestService {
  readonly server: TestServer;
  /** Runs before each request takes effect. */
  before: (path: string) => void | Promise<void> = () => undefined;
  readonly #http: Server;

  private constructor(server: TestServer) {
    this.server = server;
    this.#http = createServer((request, response) => {
      const { method = 'GET', url = '/', headers } = request;
      const gone = new AbortController();
      response.once('close', () => gone.abort());
      void (async () => {
        const sent = await buffer(request);
        await this.before(url);
        const answer = await server.fetch(`${server.url}${url}`, {
          method,
          headers: headers as Record<string, string>,
          // A request that arrived takes effect; held reads end with their client.
          ...(method === 'GET' ? { signal: gone.signal } : {}),
          ...(sent.length === 0 ? {} : { body: sent.toString() }),
        });
        response.writeHead(answer.status, Object.fromEntries(answer.headers));
        Readable.fromWeb(answer.body as never).pipe(response);
      })().catch(() => response.destroy());
    });
  }

  static async start(options: TestServerOptions = {}): Promise<TestService> {
    const service = new TestService(new TestServer(options));
    await service.listen(0);
    return service;
  }

  get port(): number {
    return (this.#http.address() as AddressInfo).port;
  }

  async listen(port: number): Promise<void> {
    this.#http.listen(port, '127.0.0.1');
    await once(this.#http, 'listening');
  }

  get environment(): Record<string, string | undefined> {
    return { BERTH_URL: `http://127.0.0.1:${this.port}`, BERTH_API_KEY: this.server.apiKey };
  }

  async sandbox(): Promise<Sandbox> {
    return await this.server.client().sandboxes.create({ agent: 'agent_one' });
  }

  async run(args: readonly string[], options: BerthOptions = {}): Promise<Ended> {
    return await berth(args, { ...options, env: { ...this.environment, ...options.env } });
  }

  start(args: readonly string[]): ReturnType<typeof startBerth> {
    return startBerth(args, { env: this.environment });
  }

  terminal(args: readonly string[], { columns = 120, line = 'exec "$0" "$@"' }: TerminalOptions = {}): PseudoTerminal {
    return new PseudoTerminal(
      '/bin/sh',
      ['-c', `stty rows 40 cols ${columns} && ${line}`, process.execPath, MAIN, ...args],
      cleanEnvironment({ ...this.environment, NO_COLOR: '1' }),
    );
  }

  /** Ends all connections and refuses further ones, until it listens again. */
  async pause(): Promise<void> {
    const closed = once(this.#http, 'close');
    this.#http.close();
    this.#http.closeAllConnections();
    await closed;
  }

  async close(): Promise<void> {
    await this.pause();
  }
}
