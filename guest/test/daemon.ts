// Runs the bundled guest daemon as a separate process, and talks to it over HTTP. For tests.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request, type Agent, type ClientRequest, type IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { guestExecResult, type GuestExecResult } from '@berth/protocol/calls/exec.ts';
import type { GuestIdentity, GuestWake } from '@berth/protocol/calls/identity.ts';
import { bundleGuestDaemon, GUEST_NODE_FLAGS } from '../src/bundle.ts';
import { deadlineOf } from '../../os/test/until.ts';

const FIRST_TEST_UID = 10_000_000;
/** As root, commands of each test file have their own uid, also beside other files. */
export const testUid = process.getuid?.() === 0 ? FIRST_TEST_UID + process.pid : (process.getuid?.() ?? 0);

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  bytes: Buffer;
  /** The bytes as UTF-8. */
  text: string;
}

const bundleFolder = await mkdtemp(join(tmpdir(), 'berth-guest-bundle-'));
const bundlePath = join(bundleFolder, 'guestd.mjs');
await writeFile(bundlePath, (await bundleGuestDaemon()).code);
// Not after the tests of the first file that imports this: files share a process.
process.once('exit', () => rmSync(bundleFolder, { recursive: true }));

export class TestDaemon {
  readonly folder: string;
  readonly codeFolder: string;
  readonly #env: Record<string, string>;
  readonly #nodeFlags: readonly string[];
  #child: ChildProcess | undefined;
  #port = 0;

  constructor(folder: string, env: Record<string, string>, nodeFlags: readonly string[]) {
    this.folder = folder;
    this.codeFolder = join(folder, 'code');
    this.#env = env;
    this.#nodeFlags = nodeFlags;
  }

  get port(): number {
    return this.#port;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.#child?.exitCode === null && this.#child.signalCode === null;
  }

  /** Starts the process and waits until it listens. Rejects when it exits first. */
  async start(): Promise<void> {
    const portFile = join(this.folder, 'port');
    await rm(portFile, { force: true });
    const log: Buffer[] = [];
    const child = spawn(process.execPath, [...GUEST_NODE_FLAGS, ...this.#nodeFlags, bundlePath], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        BERTH_GUEST_ADDRESS: '127.0.0.1',
        BERTH_GUEST_PORT: '0',
        BERTH_GUEST_PORT_FILE: portFile,
        BERTH_GUEST_CODE_FOLDER: this.codeFolder,
        BERTH_GUEST_RUN_FOLDER: join(this.folder, 'run'),
        BERTH_GUEST_CLONE_FOLDER: join(this.folder, 'clone-run'),
        BERTH_GUEST_CLONE_STATE_FILE: join(this.folder, 'clone.json'),
        BERTH_GUEST_STATE_FOLDER: join(this.folder, 'state'),
        BERTH_GUEST_AGENT_CGROUPS: '',
        BERTH_GUEST_UID: String(testUid),
        BERTH_GUEST_GID: String(testUid),
        BERTH_GUEST_HOME: this.codeFolder,
        BERTH_GUEST_IDENTITY: 'record',
        ...this.#env,
      },
    });
    this.#child = child;
    child.stdout.on('data', (chunk: Buffer) => log.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => log.push(chunk));
    await until('the daemon listens', async () => {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`the daemon ended: ${Buffer.concat(log).toString()}`);

      this.#port = Number(await readFile(portFile, 'utf8').catch(() => '0'));
      return this.#port > 0;
    });
  }

  /** Sends the signal and waits for the exit. */
  async stop(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child !== undefined && this.isRunning) {
      const ended = once(child, 'exit');
      child.kill(signal);
      await ended;
    }
  }

  /** Sends a request and returns it with its response, so that a test can abort it. */
  open(
    method: string,
    path: string,
    body?: string | Buffer,
    secret?: string,
    agent: Agent | false = false,
  ): { request: ClientRequest; answer: Promise<Answer> } {
    const sent = request({
      host: '127.0.0.1',
      port: this.#port,
      method,
      path,
      agent,
      headers: secret === undefined ? {} : { authorization: `Bearer ${secret}` },
    });
    const answer = new Promise<Answer>((resolve, reject) => {
      sent.once('error', reject);
      sent.once('response', (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('error', reject);
        response.once('end', () => {
          const bytes = Buffer.concat(chunks);
          resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes, text: bytes.toString('utf8') });
        });
      });
    });
    sent.end(body);
    return { request: sent, answer };
  }

  call(method: string, path: string, body?: unknown, secret?: string): Promise<Answer> {
    return this.open(method, path, body === undefined ? undefined : JSON.stringify(body), secret).answer;
  }

  /** Runs a command; throws when the daemon refuses it. */
  async exec(command: string, timeoutSeconds = 60): Promise<GuestExecResult> {
    const answer = await this.call('POST', '/exec', { command, timeoutSeconds });
    if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.text}`);

    return guestExecResult.parse(JSON.parse(answer.text));
  }

  /** The number that a command writes into a file of the code folder, once it is there. */
  async number(name: string): Promise<number> {
    let value = 0;
    await until(`a number in ${name}`, async () => {
      const text = await readFile(join(this.codeFolder, name), 'utf8').catch(() => '');
      value = text.endsWith('\n') ? Number(text) : 0;
      return value > 0;
    });
    return value;
  }
}

/**
 * A daemon for this test; the end of the test stops it and everything it started. `nodeFlags` are
 * those of its bridges too.
 */
export async function startDaemon(
  t: TestContext,
  env: Record<string, string> = {},
  nodeFlags: readonly string[] = [],
): Promise<TestDaemon> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-guest-test-'));
  await chmod(folder, 0o755);
  const daemon = new TestDaemon(folder, env, nodeFlags);
  await mkdir(daemon.codeFolder);
  await chown(daemon.codeFolder, testUid, testUid);
  t.after(async () => {
    await daemon.stop('SIGTERM');
    // The keeper of processes may still write the last output of what it ends.
    await rm(folder, { recursive: true, maxRetries: 20, retryDelay: 50 });
  });
  await daemon.start();
  return daemon;
}

/** Waits for a condition; throws after 30 s of an idle computer. */
export async function until(what: string, condition: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + deadlineOf(30_000);
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited 30 s in vain until ${what}`);

    await delay(5);
  }
}

/** True if the process runs; a zombie does not. */
export async function runs(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
  return stat !== '' && stat.slice(stat.lastIndexOf(')') + 2)[0] !== 'Z';
}

/** An identity that the daemon accepts. */
export function makeIdentity(changes: Partial<GuestIdentity> = {}): GuestIdentity {
  return {
    secret: 'a'.repeat(43),
    hostname: 'sandbox',
    machineId: '0123456789abcdef0123456789abcdef',
    clockUnixMs: Date.now(),
    entropy: Buffer.alloc(64, 7).toString('base64'),
    sshHostKey: { privateKey: 'private', publicKey: 'public' },
    sshAuthorizedKeys: [],
    vcpu: 2,
    memoryMib: 4_096,
    diskGib: 20,
    ...changes,
  };
}

/** A wake that the daemon accepts. */
export function makeWake(changes: Partial<GuestWake> = {}): GuestWake {
  const { secret, clockUnixMs, entropy, vcpu, memoryMib, diskGib } = makeIdentity();
  return { secret, clockUnixMs, entropy, vcpu, memoryMib, diskGib, ...changes };
}
