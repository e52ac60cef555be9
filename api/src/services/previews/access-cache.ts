// Caches preview access verdicts of one process for a second each, so that most requests need no
// query. Watches what is open and ends it when access is withdrawn; one watch per holder and
// preview. Reads cookies, but no tokens.
import { PREVIEW_REVOKED_WITHIN_MS } from '@berth/contract/route/limits.ts';
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import type { ServiceContext } from '../context/context.ts';
import { OpenList } from './open-list.ts';
import type { PreviewPlace } from '../../rules/previews/host.ts';
import { readCookie, type PreviewCookie } from './token.ts';
import { judge, type Holder, type PreviewRefusal, type Verdict } from './verdict.ts';

/**
 * Half of the promised time: a verdict may be this old when it is used, and what it admitted is
 * checked again after as long.
 */
const CACHED_MS = PREVIEW_REVOKED_WITHIN_MS / 2;
/** Leaves time for the query itself. A notice of a change triggers the check earlier. */
const RECHECK_MS = PREVIEW_REVOKED_WITHIN_MS * 0.75;
/** Open previews are ended when the database has been unreachable for this long. */
const UNCHECKED_MS = 30_000;
/** Entries per cache; the oldest is dropped first. */
const MAX_ENTRIES = 10_000;

/** Why an open preview must close. `unchecked`: the database is unreachable for too long. */
export type PreviewEnd = PreviewRefusal | 'sandbox_not_awake' | 'unchecked';

export type PreviewContext = Pick<ServiceContext, 'changes' | 'db' | 'log' | 'secretKey' | 'settings'>;

export interface PreviewLease {
  /** Resolves once access is withdrawn. */
  over: Promise<PreviewEnd>;
  close(): void;
}

export class PreviewAccessCache {
  readonly context: PreviewContext;
  /** Signs tokens and cookies of previews. */
  readonly key: Buffer;
  readonly #verdicts = new Map<string, { atMs: number; verdict: Promise<Verdict> }>();
  readonly #cookies = new Map<string, PreviewCookie>();
  readonly #watches = new Map<string, Watch>();

  constructor(context: PreviewContext) {
    this.context = context;
    this.key = context.secretKey.derive('preview-link');
  }

  /**
   * Reads a cookie that was signed here for the place; null for any other. A good signature stays
   * good, so such cookies are cached; the access they give is decided at each request.
   */
  readCookie(value: string, place: PreviewPlace): PreviewCookie | null {
    const name = `${place.port} ${place.sandboxId} ${value}`;
    const known = this.#cookies.get(name);
    if (known !== undefined) return known;
    const cookie = readCookie(this.key, value, place);
    if (cookie === null) return null;
    this.#cookies.set(name, cookie);
    const [oldest] = this.#cookies.keys();
    if (this.#cookies.size > MAX_ENTRIES && oldest !== undefined) this.#cookies.delete(oldest);
    return cookie;
  }

  /** A verdict of the last second. */
  async verdict(holder: Holder): Promise<Verdict> {
    const known = this.#verdicts.get(nameOf(holder));
    if (known !== undefined && performance.now() - known.atMs < CACHED_MS) return await known.verdict;
    return await this.freshVerdict(holder);
  }

  /** A verdict of this moment; its age counts from the start of the query. */
  async freshVerdict(holder: Holder): Promise<Verdict> {
    const name = nameOf(holder);
    const verdict = judge(this.context, this.key, holder);
    const entry = { atMs: performance.now(), verdict };
    // The newest are last.
    this.#verdicts.delete(name);
    this.#verdicts.set(name, entry);
    const [oldest] = this.#verdicts.keys();
    if (this.#verdicts.size > MAX_ENTRIES && oldest !== undefined) this.#verdicts.delete(oldest);
    try {
      return await verdict;
    } catch (error) {
      if (this.#verdicts.get(name) === entry) this.#verdicts.delete(name);
      throw error;
    }
  }

  /** Watches what a verdict admitted. The age of the verdict counts from the start of its query. */
  hold(holder: Holder): PreviewLease {
    const name = nameOf(holder);
    let watch = this.#watches.get(name);
    if (watch === undefined) {
      watch = new Watch(this, holder);
      const made = watch;
      this.#watches.set(name, made);
      const askedAtMs = this.#verdicts.get(name)?.atMs ?? performance.now() - CACHED_MS;
      void made.run(askedAtMs, () => this.#watches.delete(name));
    }
    return watch.join();
  }
}

/** Watches all that one holder has open of one preview, until it is closed or access ends. */
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

  /** Calls `ended` when it stops watching: later holders need a new watch. */
  async run(verdictAtMs: number, ended: () => void): Promise<void> {
    const changes = this.#cache.context.changes.watch(this.#holder.sandboxId);
    let askedAtMs = verdictAtMs;
    let checkedAtMs = verdictAtMs;
    try {
      for (;;) {
        const changed = await changes.next(AbortSignal.timeout(Math.ceil(Math.max(0, this.#dueInMs(askedAtMs)))));
        // Lasts until the next check after the last close, for a holder that opens the next one.
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
      const verdict = await this.#cache.freshVerdict(this.#holder);
      if (verdict.refusal !== undefined) return verdict.refusal;
      return SANDBOX_STATES[verdict.sandbox.status].awake ? 'good' : 'sandbox_not_awake';
    } catch (error) {
      const uncheckedMs = performance.now() - checkedAtMs;
      this.#cache.context.log.warn(
        { err: error, sandboxId: this.#holder.sandboxId, uncheckedMs },
        'an open preview could not be checked',
      );
      return uncheckedMs < UNCHECKED_MS ? 'unknown' : 'unchecked';
    }
  }
}

function nameOf(holder: Holder): string {
  const who = holder.kind === 'public' ? holder.linkId : `${holder.loginId} ${holder.userId} ${holder.expiresAtMs}`;
  return `${holder.sandboxId} ${holder.port} ${who}`;
}
