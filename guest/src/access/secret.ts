// The secret of this machine, of which only a hash is kept, in a file of the daemon alone: a daemon
// that was restarted never falls back to having none. Fails closed: a file that cannot be
// understood stops the daemon.
import { hash, timingSafeEqual } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';

const SCHEME = 'Bearer ';

/**
 * none: a template, nobody has claimed it yet -- begin() --> incomplete: claimed, its identity is
 * being applied -- complete() --> complete: it may be used. begin() (another identity, a wake)
 * leads back to incomplete, forget() to none (a template that was rehearsed).
 */
type SecretState = 'none' | 'incomplete' | 'complete';

export class Secret {
  readonly #path: string;
  #state: SecretState = 'none';
  #digest: Buffer | undefined;

  /** Reads what an earlier daemon of this machine left at `path`. */
  constructor(path: string) {
    this.#path = path;
    let text: string;
    try {
      text = readFileSync(path, 'latin1');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;

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

  /**
   * Whether a request with this Authorization header may enter: with the secret in force, or anyhow
   * while there is none.
   */
  accepts(authorization: string | undefined): boolean {
    if (this.#digest === undefined) return true;

    return authorization?.startsWith(SCHEME) === true && this.isInForce(authorization.slice(SCHEME.length));
  }

  /** Whether this is the secret in force. */
  isInForce(secret: string): boolean {
    // Digests have one length, and how far they agree says nothing about the secret.
    return this.#digest !== undefined && timingSafeEqual(hash('sha256', secret, 'buffer'), this.#digest);
  }

  /** Puts a secret in force; the machine may not be used until {@link complete}. */
  begin(secret: string): void {
    this.#save(hash('sha256', secret, 'buffer'), 'incomplete');
  }

  /** The identity that came with the secret is applied. */
  complete(): void {
    if (this.#digest === undefined) throw new Error('there is no secret to complete');

    this.#save(this.#digest, 'complete');
  }

  /** Back to being a template that nobody has claimed; only who holds the secret can ask for it. */
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
