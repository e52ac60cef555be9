// Caches preview access decisions for one second per process, so that most requests need no query.
// Closes open connections when access is withdrawn; one watcher per holder and preview. Reads
// cookies, never tokens.
import { PREVIEW_REVOKED_WITHIN_MS } from '@berth/contract/route/limits.ts';
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import type { ServiceContext } from '../context/context.ts';
import type { DerivedKeys } from '../context/secret-key.ts';
import { OpenList } from './open-list.ts';
import type { PreviewPlace } from '../../rules/previews/host.ts';
import { readCookie, type PreviewCookie } from './token.ts';
import { decideAccess, type Holder, type PreviewRefusal, type AccessDecision } from './decision.ts';

/** Half of the promised revocation delay: maximum age of a decision when used. */
const CACHED_MS = PREVIEW_REVOKED_WITHIN_MS / 2;
/** Leaves time for the query itself. A change notice triggers a recheck sooner. */
const RECHECK_MS = PREVIEW_REVOKED_WITHIN_MS * 0.75;
/** Closes connections unchecked for this long because the database is unavailable. */
const UNCHECKED_MS = 30_000;
/** Capacity of each cache; the oldest entry is evicted first. */
const MAX_ENTRIES = 10_000;

/** Reason to close a connection. `unchecked`: the database is unavailable for too long. */
export type PreviewEnd = PreviewRefusal | 'sandbox_not_awake' | 'unchecked';

export type PreviewContext = Pick<ServiceContext, 'callers' | 'changes' | 'db' | 'log' | 'secretKey' | 'settings'>;

export interface PreviewLease {
  /** Resolves once access is withdrawn. */
  over: Promise<PreviewEnd>;
  close(): void;
}

export class PreviewAccessCache {
  readonly context: PreviewContext;
  readonly #decisions = new Map<string, { atMs: number; decision: Promise<AccessDecision> }>();
  readonly #cookies = new Map<string, PreviewCookie>();
  /** Keys that verified `#cookies`. */
  #cookieKeys: DerivedKeys;
  readonly #watches = new Map<string, Watch>();

  constructor(context: PreviewContext) {
    this.context = context;
    this.#cookieKeys = this.keys;
  }

  /** Keys of preview tokens and cookies. */
  get keys(): DerivedKeys {
    return this.context.secretKey.keysFor('preview-link');
  }

  /**
   * Verifies a cookie for the place; null if invalid. Caches valid ones, since a signature stays
   * valid until the keys change; access is decided at each request.
   */
  readCookie(value: string, place: PreviewPlace): PreviewCookie | null {
    const { keys } = this;
    if (keys !== this.#cookieKeys) {
      this.#cookies.clear();
      this.#cookieKeys = keys;
    }
    const name = `${place.port} ${place.sandboxId} ${value}`;
    const known = this.#cookies.get(name);
    if (known !== undefined) return known;
    const cookie = readCookie(keys, value, place);
    if (cookie === null) return null;
    this.#cookies.set(name, cookie);
    const [oldest] = this.#cookies.keys();
    if (this.#cookies.size > MAX_ENTRIES && oldest !== undefined) this.#cookies.delete(oldest);
    return cookie;
  }

  /** Access decision, at most a second old. */
  async decision(holder: Holder): Promise<AccessDecision> {
    const known = this.#decisions.get(nameOf(holder));
    if (known !== undefined && performance.now() - known.atMs < CACHED_MS) return await known.decision;
    return await this.freshDecision(holder);
  }

  /** New access decision. Its age counts from the start of the query. */
  async freshDecision(holder: Holder): Promise<AccessDecision> {
    const name = nameOf(holder);
    const decision = decideAccess(this.context, this.keys, holder);
    const entry = { atMs: performance.now(), decision };
    // Keeps insertion order: newest last.
    this.#decisions.delete(name);
    this.#decisions.set(name, entry);
    const [oldest] = this.#decisions.keys();
    if (this.#decisions.size > MAX_ENTRIES && oldest !== undefined) this.#decisions.delete(oldest);
    try {
      return await decision;
    } catch (error) {
      if (this.#decisions.get(name) === entry) this.#decisions.delete(name);
      throw error;
    }
  }

  /** Leases the access that a decision granted, which may be as old as cached ones are. */
  lease(holder: Holder): PreviewLease {
    const name = nameOf(holder);
    let watch = this.#watches.get(name);
    if (watch === undefined) {
      watch = new Watch(this, holder);
      const made = watch;
      this.#watches.set(name, made);
      const askedAtMs = this.#decisions.get(name)?.atMs ?? performance.now() - CACHED_MS;
      void made.run(askedAtMs, () => this.#watches.delete(name));
    }
    return watch.join();
  }
}

/** Watches one holder's open connections to one preview, until all close or access ends. */
class Watch {
  readonly #cache: PreviewAccessCache;
  readonly #holder: Holder;
  readonly #open = new OpenList<(end: PreviewEnd) => void>();

  constructor(cache: PreviewAccessCache, holder: Holder) {
    this.#cache = cache;
    this.#holder = holder;
  }

  join(): PreviewLease {
    const { promise, resolve } = Promise.withResolvers<PreviewEnd>();
    return { over: promise, close: this.#open.add(resolve).close };
  }

  /** Calls `ended` when it stops watching: later leases need a new watcher. */
  async run(verdictAtMs: number, ended: () => void): Promise<void> {
    const changes = this.#cache.context.changes.watch(this.#holder.sandboxId);
    let askedAtMs = verdictAtMs;
    let checkedAtMs = verdictAtMs;
    try {
      for (;;) {
        const changed = await changes.next(AbortSignal.timeout(Math.ceil(Math.max(0, this.#dueInMs(askedAtMs)))));
        // Outlives the last connection until the next check, to serve a next one.
        if (this.#open.isEmpty) return;
        if (!changed && this.#dueInMs(askedAtMs) > 0) continue;
        askedAtMs = performance.now();
        const end = await this.#check(checkedAtMs);
        if (end === 'good') {
          checkedAtMs = askedAtMs;
        } else if (end !== 'unknown') {
          for (const resolve of this.#open.items()) resolve(end);
          return;
        }
      }
    } finally {
      ended();
      changes.close();
    }
  }

  #dueInMs(askedAtMs: number): number {
    return askedAtMs + RECHECK_MS - performance.now();
  }

  async #check(checkedAtMs: number): Promise<PreviewEnd | 'good' | 'unknown'> {
    try {
      const decision = await this.#cache.freshDecision(this.#holder);
      if (decision.refusal !== undefined) return decision.refusal;
      return SANDBOX_STATES[decision.sandbox.status].awake ? 'good' : 'sandbox_not_awake';
    } catch (error) {
      const uncheckedMs = performance.now() - checkedAtMs;
      this.#cache.context.log.warn(
        { err: error, sandboxId: this.#holder.sandboxId, uncheckedMs },
        'could not recheck the access of an open preview',
      );
      return uncheckedMs < UNCHECKED_MS ? 'unknown' : 'unchecked';
    }
  }
}

function nameOf(holder: Holder): string {
  const place = `${holder.sandboxId} ${holder.port}`;
  if (holder.kind === 'public') return `${place} ${holder.linkId}`;
  if (holder.kind === 'key') return `${place} ${holder.sha256}`;
  const { loginId, userId, expiresAtMs, embeddable } = holder;
  return `${place} ${loginId} ${userId} ${expiresAtMs} ${embeddable}`;
}
