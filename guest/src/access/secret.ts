// The secret of this VM. Only its hash is kept, in a file readable by the daemon alone, so a
// restarted daemon never falls back to having none. Fails closed: an unreadable file stops the
// daemon.
import { hash, timingSafeEqual } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hasCode } from '@berth/os/errors.ts';

const SCHEME = 'Bearer ';

/**
 * none: an unclaimed template -- begin() --> incomplete: claimed, identity being applied --
 * complete() --> complete: usable. begin() (another identity, a wake) returns to incomplete,
 * forget() to none (a rehearsed template).
 */
type SecretState = 'none' | 'incomplete' | 'complete';

export class Secret {
  readonly #path: string;
  #state: SecretState = 'none';
  #digest: Buffer | undefined;

  /** Reads the state left at `path` by an earlier daemon of this VM. */
  constructor(path: string) {
    this.#path = path;
    let text: string;
    try {
      text = readFileSync(path, 'latin1');
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return;

      throw error;
    }
    const match = /^([0-9a-f]{64}) (incomplete|complete)\n$/.exec(text);
    if (match?.[1] === undefined) throw new Error(`${path} is damaged; without it nobody can be let in`);

    this.#digest = Buffer.from(match[1], 'hex');
    this.#state = match[2] as SecretState;
  }

  get state(): SecretState {
    return this.#state;
  }

  /** True for an Authorization header with the current secret, and for any while there is none. */
  accepts(authorization: string | undefined): boolean {
    if (this.#digest === undefined) return true;

    return authorization?.startsWith(SCHEME) === true && this.isInForce(authorization.slice(SCHEME.length));
  }

  /** True for the current secret. */
  isInForce(secret: string): boolean {
    // Digests have equal length, and a partial match reveals nothing about the secret.
    return this.#digest !== undefined && timingSafeEqual(hash('sha256', secret, 'buffer'), this.#digest);
  }

  /** Sets a secret; the VM must not be used until {@link complete}. */
  begin(secret: string): void {
    this.#save(hash('sha256', secret, 'buffer'), 'incomplete');
  }

  /** The identity of the current secret is applied. */
  complete(): void {
    if (this.#digest === undefined) throw new Error('there is no secret to complete');

    this.#save(this.#digest, 'complete');
  }

  /** Returns to an unclaimed template. Callers must have authenticated with the secret. */
  forget(): void {
    rmSync(this.#path, { force: true });
    this.#digest = undefined;
    this.#state = 'none';
  }

  #save(digest: Buffer, state: SecretState): void {
    const fresh = `${this.#path}.new`;
    writeFileSync(fresh, `${digest.toString('hex')} ${state}\n`, { mode: 0o600 });
    renameSync(fresh, this.#path);
    this.#digest = digest;
    this.#state = state;
  }
}
