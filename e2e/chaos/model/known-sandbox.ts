// What is known of one acknowledged sandbox from the answers its client got: where it may be in its
// life, what must be in it, when it was surely awake and surely not. A contradiction that nothing
// in the weather excuses is reported.
import { SANDBOX_STATES, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { contentHash, placeOf, type ReadBack, type Written } from './guest-work.ts';
import type { Report } from '../judging/report.ts';
import { MACHINE_TROUBLES, SHARED_TROUBLES, type Trouble, type Weather } from '../judging/weather.ts';

/** Where a sandbox comes to rest. `gone`: destroying or deleted, from which nothing comes back. */
export type Rest = 'awake' | 'stopped' | 'failed' | 'gone';

/**
 * A moment for the usage ledger: seen awake or not between the two instants, or `change`: from
 * `fromMs` on it may be either.
 */
export interface Fact {
  what: 'awake' | 'not-awake' | 'change';
  fromMs: number;
  toMs: number;
}

/** A machine's end is noticed within 5 s; what it was last seen to do may lie before that. */
export const DEATH_TOLERANCE_MS = 15_000;

/** An ephemeral sandbox is gone this soon after its expiry. */
const EXPIRY_TOLERANCE_MS = 2_000;
/** The kernel writes out by itself what is some seconds old. */
const JUST_NOW_MS = 1_000;

export class KnownSandbox {
  readonly id: string;
  readonly idempotencyKey: string;
  readonly ttlSeconds: number | null;
  readonly facts: Fact[] = [];
  readonly files = new Map<string, Written & { sure: boolean }>();
  readonly #weather: Weather;
  readonly #report: Report;
  /** Names that may hold anything: written, and then the machine's memory was lost. */
  readonly #forgotten = new Set<string>();
  #may = new Set<Rest>(['awake']);
  /** A transition may be under way. */
  moving = true;
  status: SandboxStatus;
  view: Sandbox;
  #everAwake = false;
  #destroySent = false;
  #wakeSent = false;
  #hadSnapshot = false;
  /** When what is expected now was last confirmed: trouble since then may have changed it. */
  #confirmedMs: number;
  life: { token: string; count: number } | null = null;
  #lifeConfirmedMs = 0;

  constructor(view: Sandbox, idempotencyKey: string, sentMs: number, weather: Weather, report: Report) {
    this.id = view.id;
    this.view = view;
    this.status = view.status;
    this.idempotencyKey = idempotencyKey;
    this.ttlSeconds = view.ttlSeconds;
    this.#weather = weather;
    this.#report = report;
    this.#confirmedMs = sentMs;
  }

  get gone(): boolean {
    return this.#may.size === 1 && this.#may.has('gone');
  }

  get maybeGone(): boolean {
    this.#takeInDeaths();
    return this.#may.has('gone');
  }

  get expiresAtMs(): number {
    return this.view.expiresAt === null ? Infinity : Date.parse(this.view.expiresAt);
  }

  is(rest: Rest): boolean {
    return !this.moving && this.#may.size === 1 && this.#may.has(rest);
  }

  mayBe(rest: Rest): boolean {
    return this.#may.has(rest);
  }

  /**
   * It was seen asleep a moment ago: what was written for that may not have reached the disk by
   * itself yet.
   */
  get justStopped(): boolean {
    return this.is('stopped') && Date.now() - (this.facts.at(-1)?.toMs ?? 0) < JUST_NOW_MS;
  }

  /** Every status it may have now. */
  statuses(): Set<SandboxStatus> {
    this.#takeInDeaths();
    const may = (rest: Rest): boolean => this.#may.has(rest);
    const statuses = new Set<SandboxStatus>();
    if (may('awake')) statuses.add('running').add('ready');
    if (may('stopped')) statuses.add('stopped');
    if (may('failed')) statuses.add('failed');
    if (may('gone')) statuses.add('destroying').add('deleted');
    if (this.moving && !this.#everAwake) statuses.add('provisioning').add('failed');
    if (this.moving && may('stopped')) statuses.add('sleeping');
    if (this.moving && may('awake') && this.#wakeSent) statuses.add('waking');
    return statuses;
  }

  /**
   * An intent goes out: what may come of it is possible from now on. Gives back how to take that
   * back when it was refused.
   */
  intend(intent: 'sleep' | 'wake' | 'destroy', atMs: number): () => void {
    this.#takeInDeaths();
    const before = { may: new Set(this.#may), moving: this.moving };
    const outcome: Rest =
      intent === 'wake' ? 'awake' : intent === 'sleep' && this.ttlSeconds === null ? 'stopped' : 'gone';
    if (intent === 'destroy') this.#destroySent = true;
    if (intent === 'wake') this.#wakeSent = true;
    this.#may.add(outcome);
    this.moving = true;
    this.facts.push({ what: 'change', fromMs: atMs, toMs: atMs });
    return () => {
      this.#may = before.may;
      this.moving = before.moving;
      this.#takeInDeaths();
    };
  }

  /** The intent was acknowledged: only its outcome is expected from now on. */
  acknowledged(intent: 'sleep' | 'wake' | 'destroy'): void {
    this.#may = new Set<Rest>([
      intent === 'wake' ? 'awake' : intent === 'sleep' && this.ttlSeconds === null ? 'stopped' : 'gone',
    ]);
    this.moving = true;
  }

  /**
   * An answer that shows the sandbox, asked for at `sentMs`. Only one call about it may be under
   * way.
   */
  observe(view: Sandbox, sentMs: number, receivedMs: number): void {
    this.#takeInDeaths();
    const { status } = view;
    if (!reachable(this.status, status))
      this.#report.found('contradiction', `${this.id} went from ${this.status} to ${status}`);
    if (!this.statuses().has(status)) this.#unexpected(view, receivedMs);
    const rest = restOf(status);
    this.#checkExpiry(view, sentMs, receivedMs);
    if (status === 'failed' && view.statusReason === null)
      this.#report.found('contradiction', `${this.id} failed without a reason`);
    if (view.lastWake !== null && view.lastWake.at !== this.view.lastWake?.at && view.lastWake.from === 'disk')
      this.#lifeLost(view, receivedMs);
    if (
      rest === 'stopped' &&
      view.wakesFrom !== 'snapshot' &&
      !this.#excused(['disk', ...MACHINE_TROUBLES], receivedMs)
    ) {
      this.#report.found(
        'contradiction',
        `${this.id} sleeps without a snapshot (wakes from ${String(view.wakesFrom)})`,
      );
    }
    // An ephemeral one whose machine died stays dead.
    if (rest === 'failed' && this.#everAwake && view.wakesFrom === null && this.ttlSeconds === null) {
      this.#report.found(
        'sandbox-lost',
        `${this.id} failed and nothing wakes it: ${JSON.stringify(view.statusReason)}`,
      );
    }
    this.status = status;
    this.view = view;
    if (rest === null) return;
    this.#hadSnapshot = rest === 'stopped' && view.wakesFrom === 'snapshot';
    if (rest === 'awake') this.#everAwake = true;
    this.#may = new Set([rest]);
    this.moving = false;
    this.#confirmedMs = sentMs;
    this.facts.push({ what: rest === 'awake' ? 'awake' : 'not-awake', fromMs: sentMs, toMs: receivedMs });
  }

  /** The service said that there is no such sandbox. */
  missing(): void {
    this.#report.found('sandbox-lost', `${this.id} was acknowledged, and is unknown`);
    this.#may = new Set<Rest>(['gone']);
  }

  wrote(file: Written, sure: boolean): void {
    this.files.set(file.name, { ...file, sure });
    if (sure) this.#report.counts.files += 1;
  }

  /** What a command found inside against what must be there. */
  verify(found: ReadBack, atMs: number): void {
    this.#weather.endOf('guest-hangs', this.id);
    if (this.life !== null) {
      const { life } = found;
      if (life?.token !== this.life.token || !life.alive || (life.count !== null && life.count < this.life.count)) {
        const what = `${this.id}: its processes did not survive: ${JSON.stringify(this.life)} became ${JSON.stringify(life)}`;
        this.#forgetMemory(what, atMs);
      } else {
        this.life.count = life.count ?? this.life.count;
        this.#lifeConfirmedMs = atMs;
      }
    }
    for (const file of this.files.values()) {
      const hash = (file.where === 'tmpfs' ? found.tmpfs : found.disk).get(file.name);
      if (hash === contentHash(file)) {
        file.sure = true;
      } else if (hash !== undefined || file.sure) {
        this.#report.found(
          'file-lost',
          `${this.id}: ${placeOf(file)} (${file.where}) is ${hash === undefined ? 'not there' : 'not what was written'}`,
        );
        this.files.delete(file.name);
      }
    }
    for (const name of [...found.disk.keys(), ...found.tmpfs.keys()]) {
      if (!this.files.has(name) && !this.#forgotten.has(name)) {
        this.#report.found('contradiction', `${this.id} holds the file ${name} that nobody wrote there`);
        this.#forgotten.add(name);
      }
    }
  }

  beganLife(token: string, count: number, atMs: number): void {
    this.life = { token, count };
    this.#lifeConfirmedMs = atMs;
  }

  /** Its machine's process was killed, or its expiry passed: it may be failed, or gone, by now. */
  #takeInDeaths(): void {
    const now = Date.now();
    // An answer that came soon after a death may not know of it yet; nobody notices one while the
    // host daemon is away.
    const sinceMs = this.#weather.unnoticedSince(['api', 'host', 'database'], this.#confirmedMs, DEATH_TOLERANCE_MS);
    const deaths = this.#weather.beganBetween('qemu-killed', sinceMs, now, this.id);
    if (deaths.length > 0 && !this.gone) {
      this.#may.add('failed');
      this.moving = true;
    }
    if (now >= this.expiresAtMs && !this.#may.has('gone')) {
      this.facts.push({ what: 'change', fromMs: this.expiresAtMs, toMs: this.expiresAtMs });
      this.#may.add('gone');
      this.moving = true;
    }
  }

  #checkExpiry(view: Sandbox, sentMs: number, receivedMs: number): void {
    if (view.expiresAt === null || restOf(view.status) === 'gone') return;
    const expiredMs = Date.parse(view.expiresAt);
    if (sentMs <= expiredMs + EXPIRY_TOLERANCE_MS) return;
    if (this.#weather.excuses([...SHARED_TROUBLES, ...MACHINE_TROUBLES], expiredMs, receivedMs, this.id)) return;
    this.#report.found(
      'contradiction',
      `${this.id} is ${view.status} ${((sentMs - expiredMs) / 1_000).toFixed(1)} s after its expiry`,
    );
  }

  #unexpected(view: Sandbox, receivedMs: number): void {
    const rest = restOf(view.status);
    const expected = [...this.statuses()].join(' or ');
    const reason = view.statusReason === null ? '' : ` (${view.statusReason.code}: ${view.statusReason.message})`;
    const what = `${this.id} is ${view.status}${reason}, expected ${expected}`;
    if (rest === 'gone' && !this.#destroySent) {
      this.#report.found('sandbox-lost', what);
      return;
    }
    // What fell back to where it was says why.
    const troubles: Trouble[] = ['disk', ...MACHINE_TROUBLES];
    if (!this.#everAwake) troubles.push('api', 'host', 'database');
    if (rest !== 'gone' && this.#excused(troubles, receivedMs))
      this.#report.note(`unexpected but excused: ${view.status}${reason}`);
    else this.#report.found('contradiction', what);
  }

  #lifeLost(view: Sandbox, atMs: number): void {
    const what = `${this.id} woke from its disk (${view.lastWake?.reason ?? 'no reason'})`;
    // Also when nothing lived in it: it had been said to have a snapshot.
    if (this.#hadSnapshot && this.life === null && !this.#excused(['disk', ...MACHINE_TROUBLES], atMs))
      this.#report.found('contradiction', what);
    this.#forgetMemory(what, atMs);
  }

  /**
   * The machine's memory is lost, with what was only in it. A contradiction unless something ended
   * the machine.
   */
  #forgetMemory(what: string, atMs: number): void {
    const sinceMs = Math.max(this.#lifeConfirmedMs, 0);
    if (this.life !== null && !this.#weather.excuses(['disk', ...MACHINE_TROUBLES], sinceMs, atMs, this.id))
      this.#report.found('contradiction', what);
    this.life = null;
    for (const file of this.files.values()) {
      if (file.where === 'synced' && file.sure) continue;
      this.#forgotten.add(file.name);
      this.files.delete(file.name);
    }
  }

  #excused(troubles: readonly Trouble[], untilMs: number): boolean {
    return this.#weather.excuses(troubles, this.#confirmedMs, untilMs, this.id);
  }
}

/** Where a status rests; null while a transition is under way. */
export function restOf(status: SandboxStatus): Rest | null {
  if (status === 'destroying' || status === 'deleted') return 'gone';
  if (SANDBOX_STATES[status].awake) return 'awake';
  return status === 'stopped' || status === 'failed' ? status : null;
}

/** Whether the contract's table leads from one status to the other, over any number of steps. */
function reachable(from: SandboxStatus, to: SandboxStatus): boolean {
  const seen = new Set<SandboxStatus>([from]);
  for (const status of seen) for (const next of SANDBOX_STATES[status].next) seen.add(next);
  return seen.has(to);
}
