// The benchmark's caller: JSON over one kept-alive HTTP connection for each call under way. Anything but a success is an error.
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 10;
/** Longest that a machine may take to come or go before the benchmark gives up. */
const TRANSITION_DEADLINE_MS = 120_000;

export interface Endpoint {
  address: string;
  port: number;
  token: string;
}

/** JSON calls to one server. */
export class JsonCaller {
  readonly #endpoint: Endpoint;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  async call(method: string, path: string, body?: unknown): Promise<unknown> {
    const { address, port, token } = this.#endpoint;
    const payload = body === undefined ? undefined : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          host: address,
          port,
          method,
          path,
          agent: this.#agent,
          headers: {
            authorization: `Bearer ${token}`,
            ...(payload === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }),
          },
        },
        (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => (text += chunk));
          response.once('error', reject);
          response.once('end', () => {
            if (response.statusCode !== 200 && response.statusCode !== 201)
              reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
            else resolve(JSON.parse(text));
          });
        },
      );
      sent.once('error', reject);
      sent.end(payload);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** The calls of the public API that are measured. */
export class Client {
  readonly #caller: JsonCaller;
  readonly #orgId: string;
  readonly #projectId: string;

  constructor(options: { url: string; token: string; orgId: string; projectId: string }) {
    const url = new URL(options.url);
    this.#caller = new JsonCaller({ address: url.hostname, port: Number(url.port), token: options.token });
    this.#orgId = options.orgId;
    this.#projectId = options.projectId;
  }

  /** Creates a sandbox and resolves with its id as soon as a caller knows that it answers. */
  async createAwake(): Promise<string> {
    let answer = sandboxOf(
      await this.#caller.call('POST', `/v1/orgs/${this.#orgId}/sandboxes`, { agent: 'agent_one', projectId: this.#projectId }),
    );
    const deadline = performance.now() + TRANSITION_DEADLINE_MS;
    while (answer.status === 'provisioning' && performance.now() < deadline) {
      await delay(POLL_MS);
      answer = sandboxOf(await this.#caller.call('GET', `/v1/sandboxes/${answer.id}`));
    }
    if (answer.status !== 'running' && answer.status !== 'ready') throw new Error(`the sandbox ${answer.id} is ${answer.status}`);
    return answer.id;
  }

  async exec(id: string, command: string): Promise<void> {
    expectSuccess(await this.#caller.call('POST', `/v1/sandboxes/${id}/exec`, { command }));
  }

  async destroy(id: string): Promise<void> {
    let answer = sandboxOf(await this.#caller.call('POST', `/v1/sandboxes/${id}/destroy`));
    const deadline = performance.now() + TRANSITION_DEADLINE_MS;
    while (answer.status !== 'deleted') {
      if (performance.now() > deadline) throw new Error(`the sandbox ${id} is still ${answer.status}`);
      await delay(POLL_MS);
      answer = sandboxOf(await this.#caller.call('GET', `/v1/sandboxes/${id}`));
    }
  }

  /** Destroys what a measurement left. */
  async destroyAll(): Promise<void> {
    const { sandboxes } = (await this.#caller.call('GET', `/v1/orgs/${this.#orgId}/sandboxes`)) as { sandboxes: { id: string }[] };
    for (const { id } of sandboxes) await this.destroy(id);
  }

  close(): void {
    this.#caller.close();
  }
}

/** Throws unless the result of an exec is that of a command that ended well with output. */
export function expectSuccess(result: unknown): void {
  const { exitCode, stdout } = result as { exitCode?: unknown; stdout?: unknown };
  if (exitCode !== 0 || typeof stdout !== 'string' || stdout === '') throw new Error(`the command answered ${JSON.stringify(result)}`);
}

function sandboxOf(answer: unknown): { id: string; status: string } {
  return (answer as { sandbox: { id: string; status: string } }).sandbox;
}
