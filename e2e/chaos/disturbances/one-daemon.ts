// Calls to the host daemon, as the API sends them.
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import type { InstancePaths } from '@berth/machine/supervisor/instance.ts';
import { secretLines } from '@berth/protocol/secret-lines.ts';

const ANSWER_DEADLINE_MS = 60_000;

export interface HostAnswer {
  status: number;
  text: string;
}

/** Sends calls over a single connection, one at a time: after it closes, nothing more is sent. */
export class OneDaemon {
  readonly #agent: http.Agent;
  readonly #socketPath: string;
  readonly #token: string;

  static async connect({ hostToken, hostSocket }: InstancePaths): Promise<OneDaemon> {
    return new OneDaemon(hostSocket, secretLines(await readFile(hostToken, 'utf8'))[0]);
  }

  private constructor(socketPath: string, token: string) {
    this.#socketPath = socketPath;
    this.#token = token;
    this.#agent = new OneConnection();
  }

  /** JSON of a response; null if there is none. */
  async read(path: string): Promise<unknown> {
    const { status, text } = await this.ask('GET', path);
    if (status === 404) return null;
    if (status !== 200) throw new Error(`GET ${path} was answered ${status} ${text.slice(0, 300)}`);
    return JSON.parse(text);
  }

  async ask(method: string, path: string, body?: unknown): Promise<HostAnswer> {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    return await new Promise<HostAnswer>((resolve, reject) => {
      const outgoing = http.request({
        socketPath: this.#socketPath,
        agent: this.#agent,
        method,
        path,
        headers: {
          authorization: `Bearer ${this.#token}`,
          ...(payload === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }),
        },
        signal: AbortSignal.timeout(ANSWER_DEADLINE_MS),
      });
      outgoing.once('error', reject);
      outgoing.once('response', (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (text += chunk));
        response.once('error', reject);
        response.once('end', () => resolve({ status: response.statusCode ?? 0, text }));
      });
      outgoing.end(payload);
    });
  }

  leave(): void {
    this.#agent.destroy();
  }
}

class OneConnection extends http.Agent {
  #made = false;

  constructor() {
    super({ keepAlive: true, maxSockets: 1 });
  }

  override createConnection(
    ...[options, callback]: Parameters<http.Agent['createConnection']>
  ): ReturnType<http.Agent['createConnection']> {
    if (this.#made) {
      const gone = new Error('the daemon that was asked closed the connection');
      process.nextTick(() => (callback as ((error: Error) => void) | undefined)?.(gone));
      return undefined;
    }
    this.#made = true;
    return super.createConnection(options, callback);
  }
}
