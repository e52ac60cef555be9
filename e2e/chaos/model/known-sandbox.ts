// Model of one acknowledged sandbox, built from its client's responses: possible states, expected
// content, and periods surely awake or surely not. Reports contradictions that no fault in the
// weather excuses.
import { SANDBOX_STATES, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { contentHash, placeOf, type ReadBack, type Written } from './guest-work.ts';
import type { Report } from '../judging/report.ts';
import { MACHINE_TROUBLES, SHARED_TROUBLES, type Trouble, type Weather } from '../judging/weather.ts';

/** Resting state of a sandbox. `gone`: destroying or deleted, which is final. */
type Rest = 'awake' | 'stopped' | 'failed' | 'gone';

/** Fact for the usage ledger between the two instants; `change`: from `fromMs` on, either. */
export interface Fact {
  what: 'awake' | 'not-awake' | 'change';
  fromMs: number;
  toMs: number;
}

/** The service notices a dead VM within 5 s; the last event that it saw may be earlier. */
export const DEATH_TOLERANCE_MS = 15_000;

/** An ephemeral sandbox is gone this soon after its expiry. */
const EXPIRY_TOLERANCE_MS = 2_000;
/** The kernel flushes writes older than some seconds by itself. */
const JUST_NOW_MS = 1_000;

export class KnownSandbox {
  readonly id: string;
  readonly idempotencyKey: string;
  readonly ttlSeconds: number | null;
  readonly facts: Fact[] = [];
  readonly files = new Map<string, Written & { sure: boolean }>();
  readonly #weather: Weather;
  readonly #report: Report;
  /** Names of unknown content: written before the VM's memory was lost. */
  readonly #forgotten = new Set<string>();
  #may = new Set<Rest>(['awake']);
  /** True while a transition may be in progress. */
  moving = true;
  status: SandboxStatus;
  view: Sandbox;
  #everAwake = false;
  #destroySent = false;
  #wakeSent = false;
  #hadSnapshot = false;
  /** Last confirmation of the current expectation: a later fault may have changed the state. */
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

  /** Just seen asleep: the writes for that sleep may not have reached the disk without a flush. */
  get justStopped(): boolean {
    return this.is('stopped') && Date.now() - (this.facts.at(-1)?.toMs ?? 0) < JUST_NOW_MS;
  }

  /** Every status that the sandbox may have now. */
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
   * Records an intent as sent: its outcomes are possible from now on. Returns a function that
   * withdraws the intent when it is refused.
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

  /** Records the intent as acknowledged: only its outcome is expected from now on. */
  acknowledged(intent: 'sleep' | 'wake' | 'destroy'): void {
    this.#may = new Set<Rest>([
      intent === 'wake' ? 'awake' : intent === 'sleep' && this.ttlSeconds === null ? 'stopped' : 'gone',
    ]);
    this.moving = true;
  }

  /** Records a response with the sandbox, requested at `sentMs`. Only one may be in flight. */
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
    // An ephemeral sandbox never recovers from the death of its VM.
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

  /** Records a `not found` response. */
  missing(): void {
    this.#report.found('sandbox-lost', `${this.id} was acknowledged, and is unknown`);
    this.#may = new Set<Rest>(['gone']);
  }

  wrote(file: Written, sure: boolean): void {
    this.files.set(file.name, { ...file, sure });
    if (sure) this.#report.counts.files += 1;
  }

  /** Compares the content read in the guest with the expected content. */
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

  /** Allows `failed` after its QEMU was killed, and `gone` after its expiry. */
  #takeInDeaths(): void {
    const now = Date.now();
    // A response may precede a death's detection, which needs a running host daemon.
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
    // Excused by disk and VM faults; before the first awake status also by service outages.
    const troubles: Trouble[] = ['disk', ...MACHINE_TROUBLES];
    if (!this.#everAwake) troubles.push('api', 'host', 'database');
    if (rest !== 'gone' && this.#excused(troubles, receivedMs))
      this.#report.note(`unexpected but excused: ${view.status}${reason}`);
    else this.#report.found('contradiction', what);
  }

  #lifeLost(view: Sandbox, atMs: number): void {
    const what = `${this.id} woke from its disk (${view.lastWake?.reason ?? 'no reason'})`;
    // Applies without a life too: the sandbox was reported to have a snapshot.
    if (this.#hadSnapshot && this.life === null && !this.#excused(['disk', ...MACHINE_TROUBLES], atMs))
      this.#report.found('contradiction', what);
    this.#forgetMemory(what, atMs);
  }

  /** Drops the memory's content from the model. Reports a contradiction without a fault. */
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

/** Resting state of a status; null during a transition. */
function restOf(status: SandboxStatus): Rest | null {
  if (status === 'destroying' || status === 'deleted') return 'gone';
  if (SANDBOX_STATES[status].awake) return 'awake';
  return status === 'stopped' || status === 'failed' ? status : null;
}

/** True if the contract's table leads from one status to the other, in any number of steps. */
function reachable(from: SandboxStatus, to: SandboxStatus): boolean {
  const seen = new Set<SandboxStatus>([from]);
  for (const status of seen) for (const next of SANDBOX_STATES[status].next) seen.add(next);
  return seen.has(to);
}
