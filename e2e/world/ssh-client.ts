// The host's SSH client as a user of sandboxes has it: own keys, the configuration of
// docs/operations.md, and nothing of the user who runs the tests.
import { execFile, spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Caller } from './client.ts';

const run = promisify(execFile);
export const BERTH = join(import.meta.dirname, '../..', 'berth');
/** Timeout of one program. */
const DEADLINE_MS = 300_000;

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

export class SshClient {
  readonly folder: string;
  readonly #caller: Caller;

  private constructor(folder: string, caller: Caller) {
    this.folder = folder;
    this.#caller = caller;
  }

  static async make(caller: Caller): Promise<SshClient> {
    const client = new SshClient(await mkdtemp(join(tmpdir(), 'berth-ssh-')), caller);
    await writeFile(client.config, client.#configuration());
    return client;
  }

  /** Configuration file for the `-F` option of ssh, scp and git. */
  get config(): string {
    return join(this.folder, 'config');
  }

  keyFile(name: string): string {
    return join(this.folder, name);
  }

  /** Makes a key pair without a passphrase; resolves with its public line. */
  async makeKey(name: string, type: string, bits?: string): Promise<string> {
    const size = bits === undefined ? [] : ['-b', bits];
    await run('ssh-keygen', ['-q', '-t', type, ...size, '-N', '', '-C', `${name}@tests`, '-f', this.keyFile(name)]);
    return await readFile(`${this.keyFile(name)}.pub`, 'utf8');
  }

  /** Options that use one key and no other. */
  withKey(name: string): string[] {
    return [
      '-F',
      this.config,
      '-i',
      this.keyFile(name),
      '-o',
      'IdentitiesOnly=yes',
      '-o',
      'IdentityAgent=none',
      '-o',
      'BatchMode=yes',
    ];
  }

  get environment(): Record<string, string | undefined> {
    const { PATH } = process.env;
    const { url, token } = this.#caller;
    return {
      PATH,
      HOME: this.folder,
      BERTH_URL: url,
      BERTH_API_KEY: token,
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_CONFIG_SYSTEM: '/dev/null',
    };
  }

  /** Runs a program until it exits. */
  async run(
    program: string,
    args: readonly string[],
    { cwd = this.folder, env = {}, input = '' } = {},
  ): Promise<Ended> {
    const child = spawn(program, args, { cwd, env: { ...this.environment, ...env }, timeout: DEADLINE_MS });
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    const ended: Ended = { code: null, stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => (ended.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (ended.stderr += text));
    [ended.code] = (await once(child, 'close')) as [number | null];
    return ended;
  }

  /** Starts a long-running program. */
  start(program: string, args: readonly string[]): Session {
    return new Session(spawn(program, args, { cwd: this.folder, env: this.environment }));
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  #configuration(): string {
    return `Host sbx_*
  User berth
  ProxyCommand ${BERTH} tunnel %h
  KnownHostsCommand ${BERTH} known-host %h
  UserKnownHostsFile /dev/null
  StrictHostKeyChecking yes
`;
  }
}

/** A running program: its output so far, and its exit. */
class Session {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<number | null>;
  stdout = '';
  stderr = '';
  over = false;

  constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    child.stdin.on('error', () => undefined);
    child.stdout.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.ended = once(child, 'close').then(([code]) => {
      this.over = true;
      return code as number | null;
    });
  }

  end(): void {
    this.#child.kill('SIGTERM');
  }
}
