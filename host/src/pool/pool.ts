// The warm pool: restored and exercised machines without a tenant, of which a create takes one
// instead of restoring its own. Owns which there are, and hands each out once. Follows the demand
// (pool-target.ts), works when nobody waits for a machine (pool-step.ts). Must not know VMs'
// records: who takes a machine says where it belongs from then on.
import { eachOf } from '@berth/os/each-of.ts';
import type { MachineFigures } from '../vm/admission.ts';
import { randomLetters } from '../vm/directory/data-folder.ts';
import { messageOf } from '../vm/host-error.ts';
import { fits, handOver, type TakenMachine, type TakeOrder } from './hand-over.ts';
import { endMachine, exerciseMachine, makeMachine, type MachineParts, type PoolMachine } from './machine.ts';
import { machineToClaim, nextStep, type PoolPace, type PoolView } from './step.ts';
import {
  DEMAND_KEPT_MS,
  poolRoom,
  poolTarget,
  WAITING_MACHINE_MIB,
  type PoolLimits,
  type PoolMemory,
} from './target.ts';
import { standEqual } from './priority.ts';

/** What one is thought to take until the first was made. */
const FIRST_REFILL_MS = 1_500;
/** Weight of the last making in what the next is thought to take. */
const REFILL_WEIGHT = 0.3;
/** How often the machine's memory is looked at. */
const LOOK_MS = 1_000;
/**
 * After memory was short, and after a machine that could not be made; the latter doubles up to the
 * longest.
 */
const MEMORY_PAUSE_MS = 30_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** How many are ended at once. */
const ENDS_AT_ONCE = 8;

export interface PoolParts extends MachineParts {
  limits: PoolLimits;
  pace: PoolPace;
  readMemory(): PoolMemory;
}

export class WarmPool {
  readonly #parts: PoolParts;
  readonly #ready = new Map<string, PoolMachine>();
  readonly #exercising = new Map<string, PoolMachine>();
  readonly #work = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  #making = 0;
  #ending = 0;
  /** When machines were asked for, oldest first. */
  #demand: number[] = [];
  #underWay = 0;
  #quietSinceMs = -Infinity;
  #refillMs = FIRST_REFILL_MS;
  #makeFromMs = -Infinity;
  #pauseMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #started = false;

  constructor(parts: PoolParts) {
    this.#parts = parts;
  }

  /**
   * Ends what an earlier daemon left in the pool: it is worth half a second. Once, when every VM's
   * record was looked at, before `start`.
   */
  async clear(): Promise<void> {
    const { directory, log } = this.#parts;
    await directory.open();
    const left = await directory.list();
    await eachOf(left, ENDS_AT_ONCE, async (id) => {
      const record = await directory.read(id).catch((error: unknown) => {
        log.error({ machineId: id, err: error }, 'the record of a machine of the pool cannot be read');
        return null;
      });
      await endMachine(this.#parts, id, record?.driverState ?? null);
    });
    if (left.length > 0) log.info({ machines: left.length }, 'the pool of an earlier daemon is ended');
  }

  /** From now on machines are made. */
  start(): void {
    this.#started = this.#parts.limits.max > 0;
    this.#turn();
  }

  /** How many a create could take at once, and how many there shall be. */
  state(): { ready: number; target: number } {
    return { ready: this.#ready.size, target: Math.min(this.#target(), this.#room()) };
  }

  /**
   * The host's figures as they matter to who asks for a VM: what the pool has taken is there for
   * VMs, which the pool makes way for.
   */
  lend(machine: MachineFigures): MachineFigures {
    return { ...machine, memAvailableMib: machine.memAvailableMib + this.#count() * WAITING_MACHINE_MIB };
  }

  /**
   * A caller waits for a machine from now on, until the result is called: the pool leaves the
   * processor to it.
   */
  underWay(): () => void {
    this.#underWay += 1;
    let over = false;
    return () => {
      if (!over) {
        over = true;
        this.#underWay -= 1;
        this.#quietSinceMs = performance.now();
        this.#turn();
      }
    };
  }

  /**
   * Hands out a machine, once, of the size that is asked for, or null when there is none that can
   * become it. It belongs to the pool until `saveState` resolved, and to the VM from then on. When
   * this rejects nothing of the machine is left; the record that names it may stay.
   */
  async take(order: TakeOrder): Promise<TakenMachine | null> {
    const { driver, size, log } = this.#parts;
    if (!fits(size, order.size, driver.capabilities) || !this.#started || this.#stop.signal.aborted) return null;

    const nowMs = performance.now();
    this.#demand = [...this.#demand.filter((atMs) => atMs > nowMs - DEMAND_KEPT_MS), nowMs];
    // No await between the choice and the removal: nobody else can be given the same one.
    const machine = machineToClaim(this.#ready.values());
    if (machine === null) return null;

    this.#ready.delete(machine.id);
    machine.watch.abort();
    try {
      await standEqual(machine.running.process);
      await handOver(this.#parts, machine, order);
      return { machineId: machine.id, running: machine.running, guest: machine.guest };
    } catch (error) {
      log.warn(
        { machineId: machine.id, err: error },
        `a machine of the pool could not be handed out: ${messageOf(error)}`,
      );
      machine.guest.close();
      await endMachine(this.#parts, machine.id, machine.driverState);
      throw error;
    }
  }

  /** Ends every machine and whatever is under way. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('the pool is closed'));
    clearTimeout(this.#timer);
    await Promise.all(this.#work);
    const left = [...this.#ready.values()];
    this.#ready.clear();
    await eachOf(left, ENDS_AT_ONCE, (machine) => this.#end(machine));
  }

  /** Takes every step that is due, then waits for the next. */
  #turn(): void {
    clearTimeout(this.#timer);
    while (this.#started && !this.#stop.signal.aborted) {
      const view = this.#view();
      const step = nextStep(view, this.#parts.pace);
      if (step.do === 'wait') {
        this.#timer = setTimeout(() => this.#turn(), Math.max(1, Math.min(LOOK_MS, step.untilMs - view.nowMs)));
        this.#timer.unref();
        return;
      }
      this.#begin(step.do === 'make' ? this.#make() : this.#change(step.id, step));
    }
  }

  #begin(work: Promise<void>): void {
    const done = work.finally(() => {
      this.#work.delete(done);
      this.#turn();
    });
    this.#work.add(done);
  }

  async #make(): Promise<void> {
    const { log } = this.#parts;
    const startedMs = performance.now();
    const id = `pool_${randomLetters(20)}`;
    this.#making += 1;
    try {
      const machine = await makeMachine(this.#parts, id, this.#stop.signal);
      const tookMs = performance.now() - startedMs;
      this.#refillMs += REFILL_WEIGHT * (tookMs - this.#refillMs);
      this.#pauseMs = 0;
      this.#add(machine);
      log.info(
        { machineId: id, pid: machine.running.process.pid, tookMs: Math.round(tookMs) },
        'a machine waits in the pool',
      );
    } catch (error) {
      if (!this.#stop.signal.aborted) {
        this.#pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, this.#pauseMs * 2));
        this.#makeFromMs = performance.now() + this.#pauseMs;
        log.warn(
          { machineId: id, err: error, nextInMs: this.#pauseMs },
          `a machine for the pool could not be made: ${messageOf(error)}`,
        );
      }
    } finally {
      this.#making -= 1;
    }
  }

  async #change(id: string, step: { do: 'exercise' } | { do: 'end'; why: string }): Promise<void> {
    const { log } = this.#parts;
    const machine = this.#ready.get(id);
    if (machine === undefined) return;

    this.#ready.delete(id);
    if (step.do === 'end') {
      if (step.why === 'memory is short') this.#makeFromMs = performance.now() + MEMORY_PAUSE_MS;

      log.info({ machineId: id, why: step.why }, 'a machine of the pool is given up');
      await this.#end(machine);
      return;
    }
    this.#exercising.set(id, machine);
    try {
      await exerciseMachine(this.#parts, machine, this.#stop.signal);
      machine.exercisedAtMs = performance.now();
      this.#ready.set(id, machine);
    } catch (error) {
      if (!this.#stop.signal.aborted) {
        log.warn(
          { machineId: id, err: error },
          `a machine of the pool did not do its exercise and is ended: ${messageOf(error)}`,
        );
      }

      await this.#end(machine);
    } finally {
      this.#exercising.delete(id);
    }
  }

  /** Watches it while it waits: one whose process ended must not be handed out. */
  #add(machine: PoolMachine): void {
    this.#ready.set(machine.id, machine);
    void machine.gone.then(() => {
      if (!machine.watch.signal.aborted && this.#ready.delete(machine.id)) {
        this.#parts.log.warn({ machineId: machine.id }, 'the process of a machine in the pool ended');
        this.#begin(this.#end(machine));
      }
    });
  }

  async #end(machine: PoolMachine): Promise<void> {
    machine.watch.abort();
    machine.guest.close();
    this.#ending += 1;
    await endMachine(this.#parts, machine.id, machine.driverState);
    this.#ending -= 1;
  }

  #count(): number {
    return this.#ready.size + this.#making + this.#exercising.size;
  }

  #target(): number {
    const { limits } = this.#parts;
    return poolTarget({ createsAtMs: this.#demand, nowMs: performance.now(), refillMs: this.#refillMs }, limits);
  }

  /** What is being ended has not given back its memory yet. */
  #room(): number {
    return poolRoom(this.#count() + this.#ending, this.#parts.readMemory());
  }

  #view(): PoolView {
    return {
      nowMs: performance.now(),
      target: this.#target(),
      room: this.#room(),
      ready: [...this.#ready.values()],
      making: this.#making,
      exercising: this.#exercising.size,
      underWay: this.#underWay,
      quietSinceMs: this.#quietSinceMs,
      makeFromMs: this.#makeFromMs,
    };
  }
}
