// Model of one acknowledged sandbox, built from its client's responses: possible states, expected
// content, and periods surely awake or surely not. Reports contradictions that no fault in the
// fault log excuses.
import { SANDBOX_STATES, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { contentHash, placeOf, type ReadBack, type Written } from './guest-work.ts';
import type { Report } from '../judging/report.ts';
import { VM_FAULTS, SHARED_FAULTS, type FaultKind, type FaultLog } from '../judging/faults.ts';

/** Resting state of a sandbox. `gone`: destroying or deleted, which is final. */
type RestState = 'awake' | 'stopped' | 'failed' | 'gone';

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
  readonly #faults: FaultLog;
  readonly #report: Report;
  /** Names of unknown content: written before the VM's memory was lost. */
  readonly #forgotten = new Set<string>();
  #possible = new Set<RestState>(['awake']);
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

  constructor(view: Sandbox, idempotencyKey: string, sentMs: number, faults: FaultLog, report: Report) {
    this.id = view.id;
    this.view = view;
    this.status = view.status;
    this.idempotencyKey = idempotencyKey;
    this.ttlSeconds = view.ttlSeconds;
    this.#faults = faults;
    this.#report = report;
    this.#confirmedMs = sentMs;
  }

  get gone(): boolean {
    return this.#possible.size === 1 && this.#possible.has('gone');
  }

  get maybeGone(): boolean {
    this.#applyDeaths();
    return this.#possible.has('gone');
  }

  get expiresAtMs(): number {
    return this.view.expiresAt === null ? Infinity : Date.parse(this.view.expiresAt);
  }

  is(rest: RestState): boolean {
    return !this.moving && this.#possible.size === 1 && this.#possible.has(rest);
  }

  mayBe(rest: RestState): boolean {
    return this.#possible.has(rest);
  }

  /** Just seen asleep: the writes for that sleep may not have reached the disk without a flush. */
  get justStopped(): boolean {
    return this.is('stopped') && Date.now() - (this.facts.at(-1)?.toMs ?? 0) < JUST_NOW_MS;
  }

  /** Every status that the sandbox may have now. */
  statuses(): Set<SandboxStatus> {
    this.#applyDeaths();
    const may = (rest: RestState): boolean => this.#possible.has(rest);
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
    this.#applyDeaths();
    const before = { may: new Set(this.#possible), moving: this.moving };
    const outcome: RestState =
      intent === 'wake' ? 'awake' : intent === 'sleep' && this.ttlSeconds === null ? 'stopped' : 'gone';
    if (intent === 'destroy') this.#destroySent = true;
    if (intent === 'wake') this.#wakeSent = true;
    this.#possible.add(outcome);
    this.moving = true;
    this.facts.push({ what: 'change', fromMs: atMs, toMs: atMs });
    return () => {
      this.#possible = before.may;
      this.moving = before.moving;
      this.#applyDeaths();
    };
  }

  /** Records the intent as acknowledged: only its outcome is expected from now on. */
  acknowledged(intent: 'sleep' | 'wake' | 'destroy'): void {
    this.#possible = new Set<RestState>([
      intent === 'wake' ? 'awake' : intent === 'sleep' && this.ttlSeconds === null ? 'stopped' : 'gone',
    ]);
    this.moving = true;
  }

  /** Records a response with the sandbox, requested at `sentMs`. Only one may be in flight. */
  observe(view: Sandbox, sentMs: number, receivedMs: number): void {
    this.#applyDeaths();
    const { status } = view;
    if (!reachable(this.status, status))
      this.#report.found('contradiction', `${this.id} went from ${this.status} to ${status}`);
    if (!this.statuses().has(status)) this.#unexpected(view, receivedMs);
    const rest = restOf(status);
    this.#checkExpiry(view, sentMs, receivedMs);
    if (status === 'failed' && view.statusReason === null)
      this.#report.found('contradiction', `${this.id} failed without a reason`);
    if (view.lastWake !== null && view.lastWake.at !== this.view.lastWake?.at && view.lastWake.from === 'disk')
      this.#loseLife(view, receivedMs);
    if (rest === 'stopped' && view.wakesFrom !== 'snapshot' && !this.#excused(['disk', ...VM_FAULTS], receivedMs)) {
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
    this.#possible = new Set([rest]);
    this.moving = false;
    this.#confirmedMs = sentMs;
    this.facts.push({ what: rest === 'awake' ? 'awake' : 'not-awake', fromMs: sentMs, toMs: receivedMs });
  }

  /** Records a `not found` response. */
  missing(): void {
    this.#report.found('sandbox-lost', `${this.id} was acknowledged, and is unknown`);
    this.#possible = new Set<RestState>(['gone']);
  }

  wrote(file: Written, sure: boolean): void {
    this.files.set(file.name, { ...file, sure });
    if (sure) this.#report.counts.files += 1;
  }

  /** Compares the content read in the guest with the expected content. */
  verify(found: ReadBack, atMs: number): void {
    this.#faults.endOf('guest-hangs', this.id);
    if (this.life !== null) {
      const { life } = found;
      if (life?.token !== this.life.token || !life.alive || (life.count !== null && life.count < this.life.count)) {
        const became = `${JSON.stringify(this.life)} became ${JSON.stringify(life)}`;
        const what = `${this.id}: its processes did not survive: ${became}`;
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
          `${this.id}: ${placeOf(file)} (${file.where}) is ` +
            (hash === undefined ? 'not there' : 'not what was written'),
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

  startedLife(token: string, count: number, atMs: number): void {
    this.life = { token, count };
    this.#lifeConfirmedMs = atMs;
  }

  /** Allows `failed` after its QEMU was killed, and `gone` after its expiry. */
  #applyDeaths(): void {
    const now = Date.now();
    // A response may precede a death's detection, which needs a running host daemon.
    const sinceMs = this.#faults.unnoticedSince(['api', 'host', 'database'], this.#confirmedMs, DEATH_TOLERANCE_MS);
    const deaths = this.#faults.startedBetween('qemu-killed', sinceMs, now, this.id);
    if (deaths.length > 0 && !this.gone) {
      this.#possible.add('failed');
      this.moving = true;
    }
    if (now >= this.expiresAtMs && !this.#possible.has('gone')) {
      this.facts.push({ what: 'change', fromMs: this.expiresAtMs, toMs: this.expiresAtMs });
      this.#possible.add('gone');
      this.moving = true;
    }
  }

  #checkExpiry(view: Sandbox, sentMs: number, receivedMs: number): void {
    if (view.expiresAt === null || restOf(view.status) === 'gone') return;
    const expiredMs = Date.parse(view.expiresAt);
    if (sentMs <= expiredMs + EXPIRY_TOLERANCE_MS) return;
    if (this.#faults.excuses([...SHARED_FAULTS, ...VM_FAULTS], expiredMs, receivedMs, this.id)) return;
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
    const troubles: FaultKind[] = ['disk', ...VM_FAULTS];
    if (!this.#everAwake) troubles.push('api', 'host', 'database');
    if (rest !== 'gone' && this.#excused(troubles, receivedMs))
      this.#report.note(`unexpected but excused: ${view.status}${reason}`);
    else this.#report.found('contradiction', what);
  }

  #loseLife(view: Sandbox, atMs: number): void {
    const what = `${this.id} woke from its disk (${view.lastWake?.reason ?? 'no reason'})`;
    // Applies without a life too: the sandbox was reported to have a snapshot.
    if (this.#hadSnapshot && this.life === null && !this.#excused(['disk', ...VM_FAULTS], atMs))
      this.#report.found('contradiction', what);
    this.#forgetMemory(what, atMs);
  }

  /** Drops the memory's content from the model. Reports a contradiction without a fault. */
  #forgetMemory(what: string, atMs: number): void {
    const sinceMs = Math.max(this.#lifeConfirmedMs, 0);
    if (this.life !== null && !this.#faults.excuses(['disk', ...VM_FAULTS], sinceMs, atMs, this.id))
      this.#report.found('contradiction', what);
    this.life = null;
    for (const file of this.files.values()) {
      if (file.where === 'synced' && file.sure) continue;
      this.#forgotten.add(file.name);
      this.files.delete(file.name);
    }
  }

  #excused(troubles: readonly FaultKind[], untilMs: number): boolean {
    return this.#faults.excuses(troubles, this.#confirmedMs, untilMs, this.id);
  }
}

/** Resting state of a status; null during a transition. */
function restOf(status: SandboxStatus): RestState | null {
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
