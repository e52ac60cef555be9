// Keeps the secret of a clone in a separate process that exits with the clone: the daemon's memory
// would keep it for the life of the VM. Owns both sides: the keeper process, and its start,
// protocol and end in the daemon. The daemon forwards the sealed secret and cannot open it. The
// keeper also exits when the daemon is killed: its stdin closes.
//
// daemon: start ──key──> serve(sealed) ──ready──> end
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { newSecretKey, type SealedSecret } from './seal.ts';
import { CloneCredentials } from './credentials.ts';
import type { OomProtection } from '../machine/oom-protection.ts';

/** Argument that makes the daemon's program a keeper. */
export const KEEPER_ARGUMENT = 'keep-clone-credentials';
/** A keeper responds at once, unless the VM is starved of CPU. */
const ANSWER_DEADLINE_MS = 30_000;
const END_DEADLINE_MS = 5_000;

/** Secret to serve, and the target and socket folder to serve it for. */
interface SecretKeeper {
  sealed: SealedSecret;
  url: string;
  folder: string;
  user: { uid: number; gid: number };
}

/** Main function of a keeper. Resolves when its stdin closes, which ends the clone. */
export async function runSecretKeeper(): Promise<void> {
  const { key, open } = newSecretKey();
  process.stdout.write(`${key}\n`);
  let kept: CloneCredentials | undefined;
  try {
    for await (const line of createInterface({ input: process.stdin })) {
      const { sealed, url, folder, user } = JSON.parse(line) as SecretKeeper;
      kept = await CloneCredentials.open(folder, user, url, open(sealed));
      process.stdout.write('ready\n');
    }
  } finally {
    kept?.close();
  }
}

export class CloneKeeper {
  /** Public key to which secrets are sealed. */
  readonly key: string;
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #answers: AsyncIterator<string>;
  readonly #gone: Promise<void>;
  #folder: string | undefined;

  private constructor(
    child: ChildProcessByStdio<Writable, Readable, null>,
    answers: AsyncIterator<string>,
    gone: Promise<void>,
    key: string,
  ) {
    this.#child = child;
    this.#answers = answers;
    this.#gone = gone;
    this.key = key;
  }

  /** Resolves when the keeper is ready. `protection`: OOM protection that it must not inherit. */
  static async start(protection?: OomProtection): Promise<CloneKeeper> {
    const [program = ''] = process.argv.slice(1);
    protection?.remove();
    let child;
    try {
      child = spawn(process.execPath, [...process.execArgv, program, KEEPER_ARGUMENT], {
        stdio: ['pipe', 'pipe', 'inherit'],
        cwd: '/',
        env: { PATH: process.env['PATH'], LC_ALL: 'C' },
      });
    } finally {
      protection?.restore();
    }
    child.stdin.on('error', () => undefined);
    const gone = new Promise<void>((resolve) => {
      child.once('exit', () => resolve());
      child.once('error', () => resolve());
    });
    const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    try {
      return new CloneKeeper(child, answers, gone, await nextOf(answers));
    } catch (error) {
      child.kill('SIGKILL');
      throw error;
    }
  }

  /** Resolves when git can connect. Rejects when the secret was not sealed to {@link key}. */
  async serve(keeping: SecretKeeper): Promise<void> {
    this.#folder = keeping.folder;
    this.#child.stdin.write(`${JSON.stringify(keeping)}\n`);
    await nextOf(this.#answers);
  }

  /** Resolves when the keeper has exited and the secret is gone. */
  async end(): Promise<void> {
    this.#child.stdin.end();
    const force = setTimeout(() => this.#child.kill('SIGKILL'), END_DEADLINE_MS);
    await this.#gone;
    clearTimeout(force);
    if (this.#folder !== undefined) {
      // The keeper removes the folder itself, unless it was killed.
      rmSync(this.#folder, { recursive: true, force: true });
    }
  }
}

async function nextOf(answers: AsyncIterator<string>): Promise<string> {
  const late = Promise.withResolvers<never>();
  const time = setTimeout(
    () => late.reject(new Error('the keeper of the credentials does not answer')),
    ANSWER_DEADLINE_MS,
  );
  try {
    const { done, value } = await Promise.race([answers.next(), late.promise]);
    if (done === true) throw new Error('the keeper of the credentials has ended');

    return value;
  } finally {
    clearTimeout(time);
  }
}
