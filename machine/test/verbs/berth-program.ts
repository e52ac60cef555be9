// Runs the berth program as an operator does, for tests: its verbs as child processes, with folders
// of the test's and the fake driver.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endProcess, isSame } from '@berth/os/process-identity.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { freePort } from '../../../protocol/test/free-port.ts';

/** Program of `./berth`. */
export const BERTH = new URL('../../../cli/src/main.ts', import.meta.url).pathname;
const READY_DEADLINE_MS = 120_000;
/** Image and template may have to be built first. */
const VERB_DEADLINE_MS = 900_000;

interface VerbResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs a verb to its end. */
export async function runVerb(...args: string[]): Promise<VerbResult> {
  const child = spawn(process.execPath, [BERTH, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: VERB_DEADLINE_MS,
  });
  const result = { code: null as number | null, stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (result.stdout += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (result.stderr += chunk));
  [result.code] = (await once(child, 'close')) as [number | null];
  return result;
}

/** A test's installation: a dedicated data folder and port. */
export class TestInstance {
  readonly folder: string;
  readonly port: number;
  #up: ChildProcess | null = null;
  #output = '';

  private constructor(folder: string, port: number) {
    this.folder = folder;
    this.port = port;
  }

  static async make(): Promise<TestInstance> {
    return new TestInstance(await mkdtemp(join(tmpdir(), 'berth-up-')), await freePort());
  }

  get flags(): string[] {
    return ['--data-dir', this.folder, '--port', String(this.port), '--driver', 'fake'];
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** A file that the caller of `up` has open, as a shell or a service manager may. */
  get callersFile(): string {
    return `${this.folder}.callers-file`;
  }

  /** Output of `up` since its start, stdout and stderr. */
  get output(): string {
    return this.#output;
  }

  /** Starts `up` and resolves when it reports that it runs. */
  async up(): Promise<void> {
    this.#output = '';
    await writeFile(this.callersFile, 'secret');
    const command = [process.execPath, BERTH, 'up', ...this.flags];
    const child = spawn('bash', ['-c', 'exec 77< "$0"; exec "$@"', this.callersFile, ...command], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#up = child;
    const greeted = Promise.withResolvers<void>();
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        this.#output += chunk;
        if (this.#output.includes('Ctrl-C or ./berth down')) greeted.resolve();
      });
    }
    const late = setTimeout(
      () => greeted.reject(new Error(`up did not say that it runs:\n${this.#output}`)),
      READY_DEADLINE_MS,
    );
    child.once('exit', (code) => greeted.reject(new Error(`up ended with ${code}:\n${this.#output}`)));
    await greeted.promise.finally(() => clearTimeout(late));
  }

  /** Resolves with the exit code of the running `up`. */
  async ended(): Promise<number | null> {
    const child = this.#up;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;

    const [code] = (await once(child, 'exit', { signal: AbortSignal.timeout(VERB_DEADLINE_MS) })) as [number | null];
    return code;
  }

  kill(signal: NodeJS.Signals): void {
    this.#up?.kill(signal);
  }

  /** The processes that the supervisor has on record. */
  async services(): Promise<Record<string, ProcessIdentity>> {
    const record = JSON.parse(await readFile(join(this.folder, 'run/supervisor.json'), 'utf8')) as {
      services: Record<string, ProcessIdentity>;
    };
    return record.services;
  }

  /** A call of the API: status and parsed body. */
  async call(
    method: string,
    path: string,
    key: string,
    body?: unknown,
  ): Promise<{ status: number; body: Record<string, unknown> }> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(30_000),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  /** Values of the greeting's table. */
  greeted(name: 'org' | 'project' | 'API key'): string {
    const value = new RegExp(`^ {2}${name} +(\\S+)`, 'm').exec(this.#output)?.[1];
    if (value === undefined) throw new Error(`the greeting has no ${name}:\n${this.#output}`);

    return value;
  }

  /** Destroys remaining sandboxes, stops everything and removes the folder. */
  async remove(key: string | null): Promise<void> {
    if (key !== null && this.#up?.exitCode === null && this.#up.signalCode === null) {
      const { body } = await this.call('GET', `/v1/orgs/${this.greeted('org')}/sandboxes`, key);
      for (const { id } of body['sandboxes'] as { id: string }[])
        await this.call('POST', `/v1/sandboxes/${id}/destroy`, key);
    }
    const services = await this.services().catch(() => ({}));
    this.kill('SIGTERM');
    await this.ended();
    for (const service of Object.values(services)) if (await isSame(service)) await endProcess(service);

    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
    await rm(this.callersFile, { force: true });
  }
}
