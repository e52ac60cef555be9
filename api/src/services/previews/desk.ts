// What one process remembers of verdicts about previews: each for a second, so that a request costs
// no query; and the watches over what is open, of which all that one holder has open of one preview
// share one. Knows of cookies what they say, and nothing of tokens.
import { PREVIEW_REVOKED_WITHIN_MS } from '@berth/contract/route/limits.ts';
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import type { ServiceContext } from '../context/context.ts';
import { OpenList } from './open-list.ts';
import type { PreviewPlace } from '../../rules/previews/host.ts';
import { readCookie, type PreviewCookie } from './token.ts';
import { judge, type Holder, type PreviewRefusal, type Verdict } from './verdict.ts';

/**
 * Half of what is promised: a verdict may be as old when it is used, and what it let in is looked
 * at again after as long.
 */
const REMEMBERED_MS = PREVIEW_REVOKED_WITHIN_MS / 2;
/** With time for the query itself, a notice of a change comes sooner. */
const RECHECK_MS = PREVIEW_REVOKED_WITHIN_MS * 0.75;
/** What could not be looked at for this long, because the database is away, is ended. */
const UNCHECKED_MS = 30_000;
/** Of each the oldest goes first. */
const MOST_REMEMBERED = 10_000;

/** Why what is open may not stay so. `unchecked`: the database is away for too long. */
export type PreviewEnd = PreviewRefusal | 'sandbox_not_awake' | 'unchecked';

export interface PreviewLease {
  /** Resolves once what is held open may not stay so any more. */
  over: Promise<PreviewEnd>;
  close(): void;
}

const desks = new WeakMap<ServiceContext, PreviewDesk>();

/** The process's desk for the context. */
export function deskOf(context: ServiceContext): PreviewDesk {
  const known = desks.get(context);
  if (known !== undefined) return known;
  const made = new PreviewDesk(context);
  desks.set(context, made);
  return made;
}

export class PreviewDesk {
  /** What tokens and cookies of previews are signed with. */
  readonly key: Buffer;
  readonly #context: ServiceContext;
  readonly #remembered = new Map<string, { atMs: number; verdict: Promise<Verdict> }>();
  readonly #cookies = new Map<string, PreviewCookie>();
  readonly #watches = new Map<string, Watch>();

  constructor(context: ServiceContext) {
    this.#context = context;
    this.key = context.secretKey.derive('preview-link');
  }

  /**
   * What a cookie says, if it was signed here for the place. Whether it was never changes, and a
   * browser sends the same one with each of its requests, so those that are good are remembered;
   * what they are good for now is asked each time.
   */
  readCookie(value: string, place: PreviewPlace): PreviewCookie | null {
    const name = `${place.port} ${place.sandboxId} ${value}`;
    const known = this.#cookies.get(name);
    if (known !== undefined) return known;
    const cookie = readCookie(this.key, value, place);
    if (cookie === null) return null;
    this.#cookies.set(name, cookie);
    const [oldest] = this.#cookies.keys();
    if (this.#cookies.size > MOST_REMEMBERED && oldest !== undefined) this.#cookies.delete(oldest);
    return cookie;
  }

  /** A verdict of the last second. */
  async ask(holder: Holder): Promise<Verdict> {
    const known = this.#remembered.get(nameOf(holder));
    if (known !== undefined && performance.now() - known.atMs < REMEMBERED_MS) return await known.verdict;
    return await this.askAnew(holder);
  }

  /** A verdict of this moment, remembered from its beginning. */
  async askAnew(holder: Holder): Promise<Verdict> {
    const name = nameOf(holder);
    const verdict = judge(this.#context, this.key, holder);
    const entry = { atMs: performance.now(), verdict };
    // The newest are last.
    this.#remembered.delete(name);
    this.#remembered.set(name, entry);
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > MOST_REMEMBERED && oldest !== undefined) this.#remembered.delete(oldest);
    try {
      return await verdict;
    } catch (error) {
      if (this.#remembered.get(name) === entry) this.#remembered.delete(name);
      throw error;
    }
  }

  /**
   * Looks after what a verdict let in. That may be as old as verdicts are remembered, and counts
   * from when it was asked for.
   */
  hold(holder: Holder): PreviewLease {
    const name = nameOf(holder);
    let watch = this.#watches.get(name);
    if (watch === undefined) {
      watch = new Watch(this.#context, this, holder);
      const made = watch;
      this.#watches.set(name, made);
      const askedAtMs = this.#remembered.get(name)?.atMs ?? performance.now() - REMEMBERED_MS;
      void made.run(askedAtMs, () => this.#watches.delete(name));
    }
    return watch.join();
  }
}

/** Looks after all that one holder has open of one preview, until nothing is or nothing may be. */
class Watch {
  readonly #context: ServiceContext;
  readonly #desk: PreviewDesk;
  readonly #holder: Holder;
  readonly #open = new OpenList<(end: PreviewEnd) => void>();

  constructor(context: ServiceContext, desk: PreviewDesk, holder: Holder) {
    this.#context = context;
    this.#desk = desk;
    this.#holder = holder;
  }

  join(): PreviewLease {
    const { promise, resolve } = Promise.withResolvers<PreviewEnd>();
    return { over: promise, close: this.#open.add(resolve).close };
  }

  /** `ended` is called in the moment in which it has: who comes then needs another watch. */
  async run(verdictAtMs: number, ended: () => void): Promise<void> {
    const changes = this.#context.changes.watch(this.#holder.sandboxId);
    let askedAtMs = verdictAtMs;
    let checkedAtMs = verdictAtMs;
    try {
      for (;;) {
        const changed = await changes.next(AbortSignal.timeout(Math.ceil(Math.max(0, this.#dueInMs(askedAtMs)))));
        // One that lasts a moment longer than what it watched is there for what comes next.
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
      const verdict = await this.#desk.askAnew(this.#holder);
      if (verdict.refusal !== undefined) return verdict.refusal;
      return SANDBOX_STATES[verdict.sandbox.status].awake ? 'good' : 'sandbox_not_awake';
    } catch (error) {
      const uncheckedMs = performance.now() - checkedAtMs;
      this.#context.log.warn(
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
