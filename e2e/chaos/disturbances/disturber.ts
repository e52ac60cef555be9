// Injects the faults of the plan and records each in the log (judging/faults.ts). Repairs
// everything it breaks.
import { setTimeout as delay } from 'node:timers/promises';
import { processesOfInstance, processesOfVm } from '../../world/leftovers.ts';
import type { PartName } from '../../world/parts.ts';
import { until } from '../../../os/test/until.ts';
import type { ChaosClient } from '../judging/client.ts';
import { hangDaemon, killOwner, KILL_DAEMON } from '../model/guest-work.ts';
import type { PartSupervisor } from './part-supervisor.ts';
import type { KnownSandbox } from '../model/known-sandbox.ts';
import type { KnownSession } from '../agents/known-session.ts';
import type { LateMessages } from './late-message.ts';
import type { LateVerbs } from './late-verb.ts';
import type { Disturbance, LateVerb } from '../model/plan.ts';
import type { Report } from '../judging/report.ts';
import type { SmallDisk } from './small-disk.ts';
import type { FaultLog } from '../judging/faults.ts';
import { signalIfThere } from '../../../os/test/signal-if-there.ts';

const KILLED_PARTS: Readonly<Record<'kill-api' | 'kill-host' | 'kill-database' | 'kill-all', readonly PartName[]>> = {
  'kill-api': ['api'],
  'kill-host': ['host'],
  'kill-database': ['database'],
  'kill-all': ['api', 'host', 'database'],
};

/** Longest wait for the worst moment. */
const MOMENT_DEADLINE_MS = 10_000;

interface DisturberParts {
  supervisor: PartSupervisor;
  disk: SmallDisk;
  faults: FaultLog;
  report: Report;
  client: ChaosClient;
  lateVerbs: LateVerbs;
  lateMessages: LateMessages;
  /** Sandboxes that may have a VM. */
  targets: () => KnownSandbox[];
  /** Agent sessions of sandboxes that may have a VM. */
  sessions: () => KnownSession[];
}

/** A killed guest daemon runs again by then. */
const RESTART_MS = 10_000;

export class Disturber {
  readonly #parts: DisturberParts;
  /** Faults with a duration, which end by themselves. */
  readonly #lasting = new Set<Promise<void>>();

  constructor(parts: DisturberParts) {
    this.#parts = parts;
  }

  /** Injects one fault; resolves once it has begun. */
  async run(disturbance: Disturbance): Promise<void> {
    const { report, supervisor } = this.#parts;
    switch (disturbance.kind) {
      case 'kill-qemu':
        return await this.#killQemu(disturbance.pick);
      case 'hang-qemu':
        return await this.#hangQemu(disturbance.pick, disturbance.forMs);
      case 'hang-guest':
        return this.#hangGuest(disturbance.pick, disturbance.forMs);
      case 'fill-disk':
        return await this.#fillDisk(disturbance.forMs);
      case 'cut-power':
        return await this.#cutPower(disturbance.downMs);
      case 'late-verb':
        return this.#sendLate(disturbance.messages);
      case 'kill-bridge':
      case 'kill-agent':
      case 'kill-guest-daemon':
        return this.#killInGuest(disturbance.kind, disturbance.pick);
      case 'late-message':
        return this.#last(this.#parts.lateMessages.send(disturbance));
      default:
        report.note(disturbance.kind);
        return await supervisor.kill(KILLED_PARTS[disturbance.kind], disturbance.downMs);
    }
  }

  /** Resolves when none of its faults lasts. */
  async calm(): Promise<void> {
    await Promise.all(this.#lasting);
  }

  async #killQemu(pick: number): Promise<void> {
    const { faults, report } = this.#parts;
    const target = await this.#machine(pick);
    if (target === null) return;
    faults.end(faults.begin('qemu-killed', target.sandbox.id));
    for (const pid of target.pids) signalIfThere(pid, 'SIGKILL');
    report.counts.kills += 1;
    report.note('kill-qemu');
  }

  async #hangQemu(pick: number, forMs: number): Promise<void> {
    const { faults, report } = this.#parts;
    const target = await this.#machine(pick);
    if (target === null) return;
    const fault = faults.begin('qemu-hangs', target.sandbox.id);
    for (const pid of target.pids) signalIfThere(pid, 'SIGSTOP');
    report.note('hang-qemu');
    report.counts.others += 1;
    this.#last(
      delay(forMs).then(() => {
        for (const pid of target.pids) signalIfThere(pid, 'SIGCONT');
        faults.end(fault);
      }),
    );
  }

  /** Simulates a power cut: all processes end at once, and unflushed writes are lost. */
  async #cutPower(downMs: number): Promise<void> {
    const { faults, report, disk, supervisor, targets } = this.#parts;
    report.note('cut-power');
    // Waits for a sleep acknowledged just now, when most depends on flushed data.
    const deadline = Date.now() + MOMENT_DEADLINE_MS;
    while (!targets().some(({ justStopped }) => justStopped) && Date.now() < deadline) await delay(10);
    if (targets().some(({ justStopped }) => justStopped)) report.note('cut-power right after a sleep');
    // Every sandbox that may have a VM loses it; a sandbox that is surely asleep must not notice. A
    // sleeping one may have been woken before the last service ended, hence the second marking.
    const marked = new Set<KnownSandbox>();
    const markAwake = (): void => {
      for (const sandbox of targets()) {
        if (sandbox.is('stopped') || marked.has(sandbox)) continue;
        marked.add(sandbox);
        faults.end(faults.begin('qemu-killed', sandbox.id));
      }
    };
    markAwake();
    await disk.cutPower();
    await supervisor.killAllDuring(async () => {
      markAwake();
      const pids = await processesOfInstance(disk.folder);
      for (const pid of pids) signalIfThere(pid, 'SIGKILL');
      report.counts.kills += pids.length;
      await until(
        'every machine has ended',
        async () => ((await processesOfInstance(disk.folder)).length === 0 ? true : null),
        30_000,
      );
      await disk.restorePower();
    }, downMs);
  }

  #hangGuest(pick: number, forMs: number): void {
    const { faults, report, client } = this.#parts;
    const awake = this.#parts.targets().filter((sandbox) => sandbox.is('awake'));
    const sandbox = awake[Math.floor(pick * awake.length)];
    if (sandbox === undefined) return;
    // Lasts until the guest responds again.
    faults.begin('guest-hangs', sandbox.id);
    report.note('hang-guest');
    report.counts.others += 1;
    const body = { command: hangDaemon(forMs), timeoutSeconds: 30 };
    this.#last(client.send({ route: 'execInSandbox', sandboxId: sandbox.id, body }).then(() => undefined));
  }

  #killInGuest(kind: 'kill-bridge' | 'kill-agent' | 'kill-guest-daemon', pick: number): void {
    const { faults, report, client } = this.#parts;
    const sessions = this.#parts.sessions();
    const session = sessions[Math.floor(pick * sessions.length)];
    if (session === undefined) return;
    const { id, sandboxId } = session;
    const isDaemon = kind === 'kill-guest-daemon';
    const fault = faults.begin(isDaemon ? 'guest-killed' : 'agent-killed', sandboxId);
    report.note(kind);
    report.counts.kills += 1;
    const command = isDaemon ? KILL_DAEMON : killOwner(id, kind === 'kill-bridge' ? 'bridge' : 'agent');
    this.#last(
      client.send({ route: 'execInSandbox', sandboxId, body: { command, timeoutSeconds: 30 } }).then(async () => {
        if (isDaemon) await delay(RESTART_MS);
        faults.end(fault);
      }),
    );
  }

  #sendLate(messages: readonly LateVerb[]): void {
    for (const message of messages) this.#last(this.#parts.lateVerbs.send(message));
  }

  async #fillDisk(forMs: number): Promise<void> {
    const { faults, report, disk } = this.#parts;
    const fault = faults.begin('disk');
    await disk.fill();
    report.note('fill-disk');
    report.counts.others += 1;
    this.#last(
      delay(forMs).then(async () => {
        await disk.free();
        faults.end(fault);
      }),
    );
  }

  /** Picks a sandbox with a VM process, and returns its processes. */
  async #machine(pick: number): Promise<{ sandbox: KnownSandbox; pids: number[] } | null> {
    const sandboxes = this.#parts.targets();
    const start = Math.floor(pick * sandboxes.length);
    for (const sandbox of [...sandboxes.slice(start), ...sandboxes.slice(0, start)]) {
      const pids = await processesOfVm(sandbox.id);
      if (pids.length > 0) return { sandbox, pids };
    }
    return null;
  }

  #last(active: Promise<void>): void {
    const kept = active.finally(() => this.#lasting.delete(kept));
    this.#lasting.add(kept);
  }
}
