// Client of the benchmarks: JSON over one keep-alive HTTP connection per call in flight. Any
// response but a success is an error.
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 10;
/** Timeout for a sandbox to start or stop. */
const TRANSITION_DEADLINE_MS = 120_000;

interface Endpoint {
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
            ...(payload === undefined
              ? {}
              : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }),
          },
        },
        (response) => {
          let text = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => (text += chunk));
          response.once('error', reject);
          response.once('end', () => {
            if (![200, 201, 202].includes(response.statusCode ?? 0))
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

/** Measured calls of the public API. */
export class Client {
  /** The key of its calls. */
  readonly token: string;
  readonly #caller: JsonCaller;
  readonly #orgId: string;
  readonly #projectId: string;

  constructor(options: { url: string; token: string; orgId: string; projectId: string }) {
    const url = new URL(options.url);
    this.token = options.token;
    this.#caller = new JsonCaller({ address: url.hostname, port: Number(url.port), token: options.token });
    this.#orgId = options.orgId;
    this.#projectId = options.projectId;
  }

  /** Creates a sandbox. Resolves with its id as soon as a caller knows that it is awake. */
  async createAwake(fields: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const path = `/v1/orgs/${this.#orgId}/sandboxes`;
    const body = { agent: 'agent_one', projectId: this.#projectId, ...fields };
    const answer = sandboxOf(await this.#caller.call('POST', path, body));
    await this.#until(answer, ['provisioning'], ['running', 'ready']);
    return answer.id;
  }

  /** Puts a sandbox to sleep and resolves as soon as a caller knows that it is asleep. */
  async sleep(id: string): Promise<void> {
    await this.#until(
      sandboxOf(await this.#caller.call('POST', `/v1/sandboxes/${id}/sleep`)),
      ['sleeping'],
      ['stopped'],
    );
  }

  /** Resolves when a caller knows that it is awake. Throws unless it woke from its snapshot. */
  async wake(id: string): Promise<void> {
    const woken = await this.#until(
      sandboxOf(await this.#caller.call('POST', `/v1/sandboxes/${id}/wake`)),
      ['waking'],
      ['running', 'ready'],
    );
    if (woken.lastWake?.from !== 'snapshot')
      throw new Error(`the sandbox ${id} woke from ${JSON.stringify(woken.lastWake)}`);
  }

  /** Grows the memory of an awake sandbox and resolves when the new size is in effect. */
  async growMemory(id: string, memoryGb: number): Promise<void> {
    let answer = sandboxOf(await this.#caller.call('POST', `/v1/sandboxes/${id}/resize`, { memoryGb }));
    const deadline = performance.now() + TRANSITION_DEADLINE_MS;
    while (answer.allocated_memory_gb !== memoryGb) {
      if (performance.now() > deadline)
        throw new Error(`the sandbox ${id} has ${answer.allocated_memory_gb} GiB rather than ${memoryGb}`);
      await delay(POLL_MS);
      answer = sandboxOf(await this.#caller.call('GET', `/v1/sandboxes/${id}`));
    }
  }

  async exec(id: string, command: string): Promise<void> {
    expectSuccess(await this.#caller.call('POST', `/v1/sandboxes/${id}/exec`, { command }));
  }

  /** Writes a file as base64, as a client with unknown content does. */
  async writeFile(id: string, path: string, content: Buffer): Promise<void> {
    const body = { path, content: content.toString('base64'), encoding: 'base64' };
    const { size } = (await this.#caller.call('PUT', `/v1/sandboxes/${id}/file`, body)) as { size: number };
    if (size !== content.length) throw new Error(`a write of ${content.length} bytes answered ${size}`);
  }

  async readFile(id: string, path: string): Promise<Buffer> {
    const answer = await this.#caller.call('GET', `/v1/sandboxes/${id}/file?path=${encodeURIComponent(path)}`);
    const { content, encoding } = answer as { content: string; encoding: 'utf8' | 'base64' };
    return Buffer.from(content, encoding);
  }

  async listFiles(id: string, path: string): Promise<void> {
    await this.#caller.call('GET', `/v1/sandboxes/${id}/files?path=${encodeURIComponent(path)}`);
  }

  /** URL of a new public preview link to a port. */
  async createPreview(id: string, port: number): Promise<string> {
    const answer = await this.#caller.call('POST', `/v1/sandboxes/${id}/previews`, { port, audience: 'public' });
    return (answer as { preview: { url: string } }).preview.url;
  }

  /** A call of another route, with its response body. */
  async call(method: string, path: string, body?: unknown): Promise<unknown> {
    return await this.#caller.call(method, path, body);
  }

  async destroy(id: string): Promise<void> {
    const answer = sandboxOf(await this.#caller.call('POST', `/v1/sandboxes/${id}/destroy`));
    await this.#until(answer, ['destroying'], ['deleted']);
  }

  /** Destroys the leftovers of a measurement. */
  async destroyAll(): Promise<void> {
    const { sandboxes } = (await this.#caller.call('GET', `/v1/orgs/${this.#orgId}/sandboxes`)) as {
      sandboxes: { id: string }[];
    };
    for (const { id } of sandboxes) await this.destroy(id);
  }

  close(): void {
    this.#caller.close();
  }

  /** Polls during a transition; throws when it ends in another status. */
  async #until(
    answered: AnsweredSandbox,
    onTheWay: readonly string[],
    wanted: readonly string[],
  ): Promise<AnsweredSandbox> {
    let answer = answered;
    const deadline = performance.now() + TRANSITION_DEADLINE_MS;
    while (onTheWay.includes(answer.status) && performance.now() < deadline) {
      await delay(POLL_MS);
      answer = sandboxOf(await this.#caller.call('GET', `/v1/sandboxes/${answer.id}`));
    }
    if (wanted.includes(answer.status)) return answer;
    throw new Error(`the sandbox ${answer.id} is ${answer.status}: ${JSON.stringify(answer.statusReason)}`);
  }
}

interface AnsweredSandbox {
  id: string;
  status: string;
  statusReason: unknown;
  allocated_memory_gb: number;
  lastWake: { from: string } | null;
}

/** Throws unless the exec result is a success with output. */
export function expectSuccess(result: unknown): void {
  const { exitCode, stdout } = result as { exitCode?: unknown; stdout?: unknown };
  if (exitCode !== 0 || typeof stdout !== 'string' || stdout === '')
    throw new Error(`the command answered ${JSON.stringify(result)}`);
}

function sandboxOf(answer: unknown): AnsweredSandbox {
  return (answer as { sandbox: AnsweredSandbox }).sandbox;
}
