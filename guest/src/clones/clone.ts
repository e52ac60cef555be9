// Clones the repository into the code folder: once per sandbox, however often the host requests it.
// Owns the run of a clone and its end. The other files of this folder run git, guard the secret,
// move the clone into place and interpret git's output.
//
//   (none) ──request──> in flight ──git, flush, move──> done: every later call returns at once
//                          └── failed, ended, abandoned, daemon killed ──> (none), files removed
import { randomBytes } from 'node:crypto';
import { chownSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { CloneFailureCode, GuestClone, GuestCloneOutput, GuestCloneResult } from '@berth/protocol/calls/clones.ts';
import { CLONE_MESSAGE_LENGTH } from '@berth/protocol/guest-limits.ts';
import { credentialHelper } from './credentials.ts';
import { readFailure } from './failure.ts';
import { argumentsOf, environmentOf, fetchedBytes, outputTail, runProgram, watchSize } from './git.ts';
import type { CloneKeeper } from './keeper.ts';
import { CloneKeys } from './keys.ts';
import { ClonePlace, NameTaken } from './place.ts';
import type { GuestConfig } from '../machine/config.ts';
import type { OomProtection } from '../machine/oom-protection.ts';

/** Time that a response waits for the removal of a failed clone; the removal then continues. */
const REMOVAL_WAIT_MS = 5_000;
const REMOVAL_DEADLINE_MS = 10 * 60_000;
const FOLDER_PREFIX = '.berth-clone-';
const MIB = 2 ** 20;

/** The clone was ended from outside: no caller gets a result. */
class CloneEnded extends Error {
  override readonly name = 'CloneEnded';

  constructor() {
    super('the clone was ended');
  }
}

/** Reason for stopping a clone in flight. */
class Stopped extends Error {
  readonly code: CloneFailureCode;

  constructor(code: CloneFailureCode, message: string) {
    super(message);
    this.code = code;
  }
}

interface InFlightClone {
  callers: number;
  orphaned: NodeJS.Timeout | undefined;
  abort: AbortController;
  result: Promise<GuestCloneResult>;
  /** Resolves when git has exited and the secret is erased. */
  quiet: Promise<void>;
}

export class Clone {
  readonly #config: GuestConfig;
  readonly #credentialProgram: string;
  readonly #protection: OomProtection | undefined;
  readonly #place: ClonePlace;
  readonly #keys: CloneKeys;
  #inFlight: InFlightClone | undefined;
  /** Git's output in the last clone. */
  #output = outputTail();
  /** Removal of the files of failed clones. */
  #removal: Promise<void> = Promise.resolve();

  /** `protection`: OOM protection of this process, which git does not inherit. */
  constructor(config: GuestConfig, credentialProgram: string, protection?: OomProtection) {
    this.#credentialProgram = credentialProgram;
    this.#config = config;
    this.#protection = protection;
    this.#place = new ClonePlace(config.cloneStateFile, config.codeFolder);
    this.#keys = new CloneKeys(config.cloneOrphanMs, protection);
  }

  /** Key to which the credentials of a clone are sealed. Forgotten unless used in time. */
  key(): Promise<string> {
    return this.#keys.issue();
  }

  /**
   * Resolves with the result of the clone. Rejects with {@link CloneEnded} when the clone was
   * ended, and with the signal's reason when the caller left.
   */
  async run(clone: GuestClone, signal: AbortSignal): Promise<GuestCloneResult> {
    // Callers cannot join a clone that is being ended.
    while (this.#inFlight?.abort.signal.aborted === true) await this.#inFlight.result.catch(() => undefined);

    signal.throwIfAborted();
    const joined = (this.#inFlight ??= this.#begin(clone));
    joined.callers += 1;
    clearTimeout(joined.orphaned);
    try {
      return await unlessAborted(joined.result, signal);
    } finally {
      joined.callers -= 1;
      if (joined.callers === 0 && this.#inFlight === joined) {
        joined.orphaned = setTimeout(() => joined.abort.abort(new CloneEnded()), this.#config.cloneOrphanMs);
        joined.orphaned.unref();
      }
    }
  }

  /** Git's last output, in the clone in flight or the last one. */
  output(): GuestCloneOutput {
    return { text: this.#output.text(), truncated: this.#output.truncated };
  }

  /** Ends the clone in flight, if any. Resolves when git has exited and the secret is erased. */
  async end(): Promise<void> {
    const { abort, quiet } = this.#inFlight ?? {};
    abort?.abort(new CloneEnded());
    await quiet;
    await this.#keys.forget();
  }

  #begin(clone: GuestClone): InFlightClone {
    const abort = new AbortController();
    const quiet = Promise.withResolvers<void>();
    const begun: InFlightClone = {
      callers: 0,
      orphaned: undefined,
      abort,
      quiet: quiet.promise,
      result: this.#execute(clone, abort, quiet.resolve).finally(() => {
        clearTimeout(begun.orphaned);
        quiet.resolve();
        this.#inFlight = undefined;
      }),
    };
    // All callers may have left.
    begun.result.catch(() => undefined);
    return begun;
  }

  async #execute(clone: GuestClone, abort: AbortController, quiet: () => void): Promise<GuestCloneResult> {
    const time = setTimeout(
      () => abort.abort(new Stopped('timed_out', `it took longer than ${clone.timeoutSeconds} s`)),
      clone.timeoutSeconds * 1_000,
    );
    const { credentials } = clone;
    const keeper = credentials === null ? undefined : this.#keys.take(credentials.key);
    let folder: string | undefined;
    try {
      const place = this.#place.read();
      if (place.state === 'moving') {
        folder = place.folder;
        this.#place.finishMove(folder);
      } else if (place.state === 'none') {
        if (credentials !== null && keeper === undefined) {
          // A retry requests a new key first.
          throw new CloneEnded();
        }
        // Leftovers and files still being removed take disk space that this clone may need.
        await unlessAborted(
          this.#removal.then(() => this.#remove(this.#leftovers())),
          abort.signal,
        );
        folder = FOLDER_PREFIX + randomBytes(8).toString('hex');
        await this.#fetch(clone, folder, keeper, abort);
        clearTimeout(time);
        this.#place.take(folder);
      }
      return { outcome: 'cloned' };
    } catch (error) {
      if (error instanceof CloneEnded) throw error;

      return failureOf(error);
    } finally {
      clearTimeout(time);
      await keeper?.end();
      quiet();
      if (folder !== undefined) {
        this.#removal = this.#remove([folder]);
        await Promise.race([this.#removal, delay(REMOVAL_WAIT_MS, undefined, { ref: false })]);
      }
    }
  }

  /** Clones into `work` and flushes. Rejects with {@link GitFailed}, or the reason for stopping. */
  async #fetch(
    clone: GuestClone,
    name: string,
    keeper: CloneKeeper | undefined,
    abort: AbortController,
  ): Promise<void> {
    const { user, codeFolder, cloneFolder, appliesIdentity } = this.#config;
    const folder = join(codeFolder, name);
    mkdirSync(folder, { mode: 0o700 });
    chownSync(folder, user.uid, user.gid);
    const work = join(folder, 'work');
    if (clone.credentials !== null) {
      await keeper?.serve({
        sealed: clone.credentials,
        url: clone.url,
        folder: cloneFolder,
        user: { uid: user.uid, gid: user.gid },
      });
    }

    const tooLarge = (): void => abort.abort(new Stopped('too_large', `more than ${clone.maxMib} MiB were fetched`));
    const unwatch = watchSize(work, clone.maxMib * MIB, tooLarge);
    const options = { user, folder, protection: this.#protection, signal: abort.signal };
    try {
      const env = environmentOf(
        clone,
        folder,
        keeper === undefined ? null : credentialHelper(this.#credentialProgram, cloneFolder),
      );
      const output = (this.#output = outputTail());
      const { code, words } = await runProgram('git', argumentsOf(clone, work), { ...options, env, output });
      if (code !== 0) throw new GitFailed(words);

      if (fetchedBytes(work) > clone.maxMib * MIB) tooLarge();
    } finally {
      unwatch();
      await keeper?.end();
    }
    if (appliesIdentity) {
      // A clone reported as done must survive the loss of the VM.
      const { code, words } = await runProgram('sync', ['--file-system', folder], { ...options, env: { LC_ALL: 'C' } });
      if (code !== 0) throw new GitFailed(words);
    }
    abort.signal.throwIfAborted();
  }

  #leftovers(): string[] {
    return readdirSync(this.#config.codeFolder).filter((name) => name.startsWith(FOLDER_PREFIX));
  }

  /** As the tenant's user, who owns the folders. Never rejects: the tenant must remove the rest. */
  async #remove(names: readonly string[]): Promise<void> {
    const { user, codeFolder } = this.#config;
    const there = names.filter((name) => statSync(join(codeFolder, name), { throwIfNoEntry: false }) !== undefined);
    if (there.length === 0) return;

    try {
      const signal = AbortSignal.timeout(REMOVAL_DEADLINE_MS);
      const options = { user, folder: codeFolder, protection: this.#protection, signal, env: { LC_ALL: 'C' } };
      const { code, words } = await runProgram('rm', ['-rf', '--', ...there], options);
      if (code !== 0) console.error(`what a clone left was not removed: ${words}`);
    } catch (error) {
      console.error('what a clone left was not removed:', error);
    }
  }
}

/** Settles like the promise, or rejects with the signal's reason when it aborts first. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const reject = (): void => aborted.reject(signal.reason);
  signal.addEventListener('abort', reject, { once: true });
  try {
    signal.throwIfAborted();
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', reject);
  }
}

/** Carries the last output of git, or of another program of the clone, as its message. */
class GitFailed extends Error {}

function failureOf(error: unknown): GuestCloneResult {
  const failed = (code: CloneFailureCode, message: string): GuestCloneResult => ({
    outcome: 'failed',
    code,
    message: message.slice(0, CLONE_MESSAGE_LENGTH),
  });
  if (error instanceof Stopped) return failed(error.code, error.message);

  if (error instanceof NameTaken) return failed('folder_not_empty', error.message);

  if (error instanceof GitFailed) {
    const { code, words } = readFailure(error.message);
    return failed(code, words);
  }
  const { code, message } = error as NodeJS.ErrnoException;
  return failed(code === 'ENOSPC' || code === 'EDQUOT' ? 'disk_full' : 'failed', message);
}
