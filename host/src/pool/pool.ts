// The warm pool: restored and exercised VMs without a tenant, each handed out once to a create.
// Follows the demand (target.ts) and works only while no caller waits (step.ts). Must not know VM
// records: the taker records the new owner.
import { eachOf } from '@berth/os/each-of.ts';
import type { HostFigures } from '../vm/admission.ts';
import { randomLetters } from '../vm/directory/data-folder.ts';
import { boundedMessageOf } from '../vm/host-error.ts';
import { vmsToEnd } from './give-way.ts';
import { fits, handOver, type TakenVm, type TakeOrder } from './hand-over.ts';
import { destroyPoolVm, exercisePoolVm, createPoolVm, type PoolVmParts, type PoolVm } from './pool-vm.ts';
import { vmToClaim, nextStep, type PoolPace, type PoolView } from './step.ts';
import { DEMAND_KEPT_MS, poolRoom, poolTarget, WAITING_VM_MIB, type PoolLimits, type PoolMemory } from './target.ts';
import { standEqual } from './priority.ts';

/** Refill time assumed before the first measurement. */
const FIRST_REFILL_MS = 1_500;
/** Weight of the last measurement in the estimated refill time. */
const REFILL_WEIGHT = 0.3;
/** Poll interval of the host's memory. */
const POLL_MS = 1_000;
/** Back-off after a memory shortage, and after a failed VM start (doubling up to the longest). */
const MEMORY_PAUSE_MS = 30_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
const ENDS_AT_ONCE = 8;

export interface PoolParts extends PoolVmParts {
  limits: PoolLimits;
  pace: PoolPace;
  readMemory(): PoolMemory;
}

export class WarmPool {
  readonly #parts: PoolParts;
  readonly #ready = new Map<string, PoolVm>();
  readonly #exercising = new Map<string, PoolVm>();
  readonly #tasks = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  #making = 0;
  /** VMs being ended: their memory is not free yet. */
  readonly #endings = new Set<Promise<void>>();
  /** Times of recent requests, oldest first. */
  #demand: number[] = [];
  #waitingCallers = 0;
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
   * Ends the pool VMs of an earlier daemon: each is worth only half a second. Call once, after all
   * VM records were recovered and before `start`.
   */
  async clear(): Promise<void> {
    const { directory, log } = this.#parts;
    await directory.open();
    const left = await directory.list();
    await eachOf(left, ENDS_AT_ONCE, async (id) => {
      const record = await directory.read(id).catch((error: unknown) => {
        log.error({ machineId: id, err: error }, 'the record of a VM of the pool cannot be read');
        return null;
      });
      await destroyPoolVm(this.#parts, id, record?.driverState ?? null);
    });
    if (left.length > 0) log.info({ vms: left.length }, 'removing the pool of an earlier daemon');
  }

  start(): void {
    this.#started = this.#parts.limits.max > 0;
    this.#step();
  }

  state(): { ready: number; target: number } {
    return { ready: this.#ready.size, target: Math.min(this.#target(), this.#memoryLimit()) };
  }

  /** Adds the pool's memory to the host's available memory: the pool gives way to VMs. */
  withPoolMemory(vm: HostFigures): HostFigures {
    return { ...vm, memAvailableMib: vm.memAvailableMib + this.#count() * WAITING_VM_MIB };
  }

  /**
   * Marks a waiting caller, to whom the pool leaves the CPU. Call the result when the caller is
   * served.
   */
  underWay(): () => void {
    this.#waitingCallers += 1;
    let over = false;
    return () => {
      if (!over) {
        over = true;
        this.#waitingCallers -= 1;
        this.#quietSinceMs = performance.now();
        this.#step();
      }
    };
  }

  /**
   * Hands out a pool VM for the requested size, or null if none fits. The pool owns it until
   * `saveState` resolves, the VM afterwards. A rejection leaves nothing of it but possibly the
   * record that names it.
   */
  async take(order: TakeOrder): Promise<TakenVm | null> {
    const { driver, size, log } = this.#parts;
    if (!fits(size, order.size, driver.capabilities) || !this.#started || this.#stop.signal.aborted) return null;

    const nowMs = performance.now();
    this.#demand = [...this.#demand.filter((atMs) => atMs > nowMs - DEMAND_KEPT_MS), nowMs];
    // No await between choice and removal: no VM is handed out twice.
    const vm = vmToClaim(this.#ready.values());
    if (vm === null) return null;

    this.#ready.delete(vm.id);
    vm.watch.abort();
    try {
      await standEqual(vm.running.process);
      await handOver(this.#parts, vm, order);
      return { machineId: vm.id, diskKey: vm.diskKey, running: vm.running, guest: vm.guest };
    } catch (error) {
      log.warn(
        { machineId: vm.id, err: error },
        `a VM of the pool could not be handed over: ${boundedMessageOf(error)}`,
      );
      vm.guest.close();
      await destroyPoolVm(this.#parts, vm.id, vm.driverState);
      throw error;
    }
  }

  /**
   * Ends waiting VMs for a caller that lacks memory, and makes none for a while. Ends none if that
   * leaves the caller without room. True if VMs were ended: the caller may have room now.
   */
  async giveWay(missingMib: number): Promise<boolean> {
    if (this.#stop.signal.aborted) return false;
    if (this.#endings.size === 0) {
      for (const vm of await vmsToEnd(this.#parts, [...this.#ready.values()], missingMib)) {
        if (!this.#ready.delete(vm.id)) continue;
        this.#parts.log.info({ machineId: vm.id, why: 'a caller needs its memory' }, 'discarding a VM of the pool');
        this.#begin(this.#end(vm));
      }
    }
    if (this.#endings.size === 0) return false;

    this.#makeFromMs = performance.now() + MEMORY_PAUSE_MS;
    await Promise.all([...this.#endings]);
    return true;
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the pool is closed'));
    clearTimeout(this.#timer);
    await Promise.all(this.#tasks);
    const left = [...this.#ready.values()];
    this.#ready.clear();
    await eachOf(left, ENDS_AT_ONCE, (vm) => this.#end(vm));
  }

  /** Performs all due steps, then schedules the next. */
  #step(): void {
    clearTimeout(this.#timer);
    while (this.#started && !this.#stop.signal.aborted) {
      const view = this.#view();
      const step = nextStep(view, this.#parts.pace);
      if (step.do === 'wait') {
        this.#timer = setTimeout(() => this.#step(), Math.max(1, Math.min(POLL_MS, step.untilMs - view.nowMs)));
        this.#timer.unref();
        return;
      }
      this.#begin(step.do === 'make' ? this.#make() : this.#change(step.id, step));
    }
  }

  #begin(work: Promise<void>): void {
    const done = work.finally(() => {
      this.#tasks.delete(done);
      this.#step();
    });
    this.#tasks.add(done);
  }

  async #make(): Promise<void> {
    const { log } = this.#parts;
    const startedMs = performance.now();
    const id = `pool_${randomLetters(20)}`;
    this.#making += 1;
    try {
      const vm = await createPoolVm(this.#parts, id, this.#stop.signal);
      const tookMs = performance.now() - startedMs;
      this.#refillMs += REFILL_WEIGHT * (tookMs - this.#refillMs);
      this.#pauseMs = 0;
      this.#add(vm);
      log.info({ machineId: id, pid: vm.running.process.pid, tookMs: Math.round(tookMs) }, 'a VM is ready in the pool');
    } catch (error) {
      if (!this.#stop.signal.aborted) {
        this.#pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, this.#pauseMs * 2));
        this.#makeFromMs = performance.now() + this.#pauseMs;
        log.warn(
          { machineId: id, err: error, nextInMs: this.#pauseMs },
          `a VM for the pool could not be created: ${boundedMessageOf(error)}`,
        );
      }
    } finally {
      this.#making -= 1;
    }
  }

  async #change(id: string, step: { do: 'exercise' } | { do: 'end'; why: string }): Promise<void> {
    const { log } = this.#parts;
    const vm = this.#ready.get(id);
    if (vm === undefined) return;

    this.#ready.delete(id);
    if (step.do === 'end') {
      if (step.why === 'memory is short') this.#makeFromMs = performance.now() + MEMORY_PAUSE_MS;

      log.info({ machineId: id, why: step.why }, 'discarding a VM of the pool');
      await this.#end(vm);
      return;
    }
    this.#exercising.set(id, vm);
    try {
      await exercisePoolVm(this.#parts, vm, this.#stop.signal);
      vm.exercisedAtMs = performance.now();
      this.#ready.set(id, vm);
    } catch (error) {
      if (!this.#stop.signal.aborted) {
        log.warn(
          { machineId: id, err: error },
          `discarding a VM of the pool that failed its exercise: ${boundedMessageOf(error)}`,
        );
      }

      await this.#end(vm);
    } finally {
      this.#exercising.delete(id);
    }
  }

  /** Watches a waiting VM: never hand out one whose process exited. */
  #add(vm: PoolVm): void {
    this.#ready.set(vm.id, vm);
    void vm.gone.then(() => {
      if (!vm.watch.signal.aborted && this.#ready.delete(vm.id)) {
        this.#parts.log.warn({ machineId: vm.id }, 'the process of a VM in the pool exited');
        this.#begin(this.#end(vm));
      }
    });
  }

  async #end(vm: PoolVm): Promise<void> {
    vm.watch.abort();
    vm.guest.close();
    const ended = destroyPoolVm(this.#parts, vm.id, vm.driverState);
    this.#endings.add(ended);
    await ended;
    this.#endings.delete(ended);
  }

  #count(): number {
    return this.#ready.size + this.#making + this.#exercising.size;
  }

  #target(): number {
    const { limits } = this.#parts;
    return poolTarget({ createsAtMs: this.#demand, nowMs: performance.now(), refillMs: this.#refillMs }, limits);
  }

  #memoryLimit(): number {
    return poolRoom(this.#count() + this.#endings.size, this.#parts.readMemory());
  }

  #view(): PoolView {
    return {
      nowMs: performance.now(),
      target: this.#target(),
      room: this.#memoryLimit(),
      ready: [...this.#ready.values()],
      making: this.#making,
      exercising: this.#exercising.size,
      underWay: this.#waitingCallers,
      quietSinceMs: this.#quietSinceMs,
      makeFromMs: this.#makeFromMs,
    };
  }
}
