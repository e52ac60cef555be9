// The slot pool of one instance: keeps idle slots ready, so that a claim starts no process;
// releases, adopts and reaps slots. Owns the assignment of slots; slot-maker.ts makes them, the
// registry records them on the host.
//
//   made -> idle -> claimed -> (release) -> unmade
//               (close) \-> unmade
import type { EgressDenied, EgressPolicy } from '@berth/protocol/egress.ts';
import { SlotMaker } from './slot-maker.ts';
import { SlotWaiters } from './slots/slot-waiters.ts';
import type { NetworkLogEvent, NetworkOptions } from './dns/network-options.ts';
import {
  DEFAULT_REGISTRY_FOLDER,
  makeRegistry,
  readEntry,
  readRegistry,
  removeDrafts,
  replaceEntry,
} from './slots/registry.ts';
import { Resolver } from './dns/resolver.ts';
import { NetworkError, parseGuestCidr, slotOf } from './slots/slot.ts';
import type { GuestCidr, Network, Slot } from './slots/slot.ts';
import { Upstreams } from './dns/upstreams.ts';

const DEFAULT_IDLE_SLOTS = 8;

/** Slots made or unmade by one script: larger batches save processes but deliver later. */
const BATCH_SLOTS = 8;

/**
 * Quiet time before a refill while at least half of the idle slots remain: making slots takes CPU
 * time that a starting VM needs.
 */
const QUIET_MS = 2_000;

/** Back-off after a failed make when no caller waits; doubles each time. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * Makes the network of one instance. Throws {@link NetworkError} for invalid options; changes
 * nothing before `prepare`.
 */
export function createNetwork(options: NetworkOptions): Network {
  return new SlotPool(options);
}

class SlotPool implements Network {
  readonly #options: NetworkOptions;
  readonly #cidr: GuestCidr;
  readonly #registryFolder: string;
  readonly #idleTarget: number;
  readonly #maker: SlotMaker;

  readonly #idle: Slot[] = [];
  readonly #claimed = new Map<number, { slot: Slot; vmId: string }>();
  readonly #waiters = new SlotWaiters();
  /** Slots to be unmade, queued or in progress. */
  readonly #pendingRemovals = new Set<number>();
  readonly #removals = new Map<number, PromiseWithResolvers<void>>();
  #running: Promise<void> | null = null;
  #failure: unknown = null;
  #pauseMs = 0;
  #pause: NodeJS.Timeout | null = null;
  /** True if the last try found no free number. */
  #exhausted = false;
  #closed = false;

  constructor(options: NetworkOptions) {
    this.#options = options;
    this.#cidr = parseGuestCidr(options.cidr);
    this.#registryFolder = options.registryFolder ?? DEFAULT_REGISTRY_FOLDER;
    this.#idleTarget = options.idleSlots ?? DEFAULT_IDLE_SLOTS;
    const upstreams = new Upstreams(options.upstreams ?? { file: '/etc/resolv.conf' }, (error) =>
      this.#log('warn', "Cannot read the host's name servers", error),
    );
    this.#maker = new SlotMaker({
      instanceId: options.instanceId,
      dataFolder: options.dataFolder,
      cidr: this.#cidr,
      ...{ registryFolder: this.#registryFolder, rateMbit: options.rateMbit },
      resolver: new Resolver(upstreams, options.answer),
    });
  }

  async prepare(): Promise<string[]> {
    await makeRegistry(this.#registryFolder);
    await removeDrafts(this.#registryFolder, this.#options.instanceId);
    const changes = await this.#maker.prepareHost();
    await this.#run();
    if (this.#failure && this.#idle.length === 0) throw this.#failure;
    return changes;
  }

  async claim(vmId: string, signal: AbortSignal): Promise<Slot> {
    signal.throwIfAborted();
    if (this.#closed) throw new NetworkError('The network is closed.');
    for (const held of this.#claimed.values()) if (held.vmId === vmId) return held.slot;
    const idle = this.#idle.shift();
    const slot = idle ?? (await this.#wait(signal));
    // Reserve now: neither a reap nor a refill may take the slot for idle while its entry is
    // written.
    this.#claimed.set(slot.number, { slot, vmId });
    this.#refillSoon();
    try {
      const { instanceId, dataFolder } = this.#options;
      await replaceEntry(this.#registryFolder, slot.number, { instanceId, dataFolder, vmId });
    } catch (error) {
      await this.release(slot.number);
      throw new NetworkError(`Claiming network slot ${slot.number}: ${(error as Error).message}`, { cause: error });
    }
    return slot;
  }

  async adopt(number: number, egress: EgressPolicy): Promise<Slot> {
    const held = this.#claimed.get(number);
    if (held) return held.slot;
    const slot = slotOf(this.#cidr, number);
    const entry = await readEntry(this.#registryFolder, number);
    if (entry?.instanceId !== this.#options.instanceId || entry.vmId === null)
      throw new NetworkError(`This instance has not claimed network slot ${number}.`);

    const missing = await this.#maker.missingParts(slot);
    if (missing.length > 0)
      throw new NetworkError(`Network slot ${number} is incomplete: ${missing.join(' and ')} missing.`);
    this.#maker.egressOf(slot).adopt(egress);
    await this.#maker.serve(slot);
    this.#claimed.set(number, { slot, vmId: entry.vmId });
    return slot;
  }

  async setEgress(number: number, egress: EgressPolicy): Promise<void> {
    const held = this.#claimed.get(number);
    if (held === undefined) throw new NetworkError(`Network slot ${number} is not claimed.`);
    await this.#maker.egressOf(held.slot).enforce(egress);
  }

  egressDenied(number: number): EgressDenied | null {
    const slot = this.#claimed.get(number)?.slot;
    return slot === undefined ? null : this.#maker.egressOf(slot).denied();
  }

  async countEgressDenied(): Promise<void> {
    // One after the other: a count must not take the CPU from starting VMs.
    for (const { slot } of this.#claimed.values()) await this.#maker.egressOf(slot).countDenied();
  }

  async release(number: number): Promise<void> {
    const under = this.#removals.get(number);
    if (under) return under.promise;
    // Idle or being made, not claimed.
    if (this.#maker.has(number) && !this.#claimed.has(number)) return;
    const entry = await readEntry(this.#registryFolder, number);
    if (entry?.instanceId === this.#options.instanceId) return this.#remove(number);
  }

  async reap(known: ReadonlySet<number>): Promise<string[]> {
    const entries = await readRegistry(this.#registryFolder, this.#options.instanceId);
    const orphans = [...entries].filter(([number]) => !known.has(number) && !this.#maker.has(number));
    await Promise.all(orphans.map(([number]) => this.#remove(number)));
    return orphans.map(
      ([number, { vmId }]) => `network slot ${number} ${vmId === null ? 'without a claim' : `claimed for ${vmId}`}`,
    );
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#endPause();
    this.#waiters.rejectAll(new NetworkError('The network was closed.'));
    await this.#running;
    await Promise.all(this.#idle.splice(0).map((slot) => this.#remove(slot.number)));
    for (const number of this.#claimed.keys()) this.#maker.stopServing(number);
    await this.#maker.removeRootRules();
  }

  #wait(signal: AbortSignal): Promise<Slot> {
    const slot = this.#waiters.wait(signal);
    // A caller waits now, so retry at once after an earlier failure.
    this.#exhausted = false;
    this.#endPause();
    void this.#run();
    return slot;
  }

  #remove(number: number): Promise<void> {
    const under = this.#removals.get(number);
    if (under) return under.promise;
    const settlement = Promise.withResolvers<void>();
    this.#claimed.delete(number);
    this.#pendingRemovals.add(number);
    this.#removals.set(number, settlement);
    void this.#run();
    return settlement.promise;
  }

  /**
   * Does all pending work, one script at a time. Never rejects; callers learn of failures through
   * their own promises.
   */
  #run(): Promise<void> {
    this.#running ??= this.#runPending().finally(() => {
      this.#running = null;
      if (this.#hasWork()) void this.#run();
    });
    return this.#running;
  }

  async #runPending(): Promise<void> {
    while (this.#hasWork()) {
      if (this.#pendingRemovals.size > 0) await this.#removeBatch();
      if (this.#missingCount() > 0) await this.#refill();
    }
  }

  #hasWork(): boolean {
    return this.#pendingRemovals.size > 0 || this.#missingCount() > 0;
  }

  #missingCount(): number {
    if (this.#closed || this.#exhausted || this.#pause) return 0;
    return Math.max(0, this.#idleTarget + this.#waiters.size - this.#idle.length);
  }

  async #refill(): Promise<void> {
    try {
      const { slots, changes } = await this.#maker.make(Math.min(BATCH_SLOTS, this.#missingCount()));
      for (const change of changes) this.#log('info', change);
      this.#failure = null;
      this.#pauseMs = 0;
      this.#idle.push(...slots);
      this.#exhausted = slots.length === 0;
    } catch (error) {
      this.#failure = error;
      this.#log('warn', 'Cannot create network slots', error);
      this.#pauseMs = Math.min(LONGEST_PAUSE_MS, this.#pauseMs * 2 || FIRST_PAUSE_MS);
      this.#pauseFor(this.#pauseMs);
    }
    this.#serveWaiters();
  }

  #serveWaiters(): void {
    this.#waiters.serveFrom(this.#idle);
    if (this.#failure) this.#waiters.rejectAll(this.#failure);
    if (!this.#exhausted) return;
    const full = new NetworkError(
      `All network slots of ${this.#cidr.text} on this host are taken (${this.#cidr.slotCount}).`,
    );
    this.#waiters.rejectAll(full);
  }

  #refillSoon(): void {
    if (this.#failure) return;
    if (this.#idle.length * 2 >= this.#idleTarget) return this.#pauseFor(QUIET_MS);
    this.#endPause();
    void this.#run();
  }

  #pauseFor(ms: number): void {
    this.#endPause();
    this.#pause = setTimeout(() => {
      this.#endPause();
      void this.#run();
    }, ms);
    this.#pause.unref();
  }

  #endPause(): void {
    if (this.#pause) clearTimeout(this.#pause);
    this.#pause = null;
  }

  async #removeBatch(): Promise<void> {
    const numbers = [...this.#pendingRemovals].slice(0, BATCH_SLOTS);
    for (const number of numbers) this.#pendingRemovals.delete(number);
    try {
      await this.#maker.remove(numbers);
      for (const number of numbers) this.#settle(number, null);
    } catch (error) {
      if (numbers.length === 1) return this.#settle(numbers[0] as number, error);
      // A failing slot must not block the others.
      for (const number of numbers) {
        await this.#maker.remove([number]).then(
          () => this.#settle(number, null),
          (reason: unknown) => this.#settle(number, reason),
        );
      }
    }
    this.#exhausted = false;
  }

  #settle(number: number, error: unknown): void {
    const settlement = this.#removals.get(number);
    this.#removals.delete(number);
    if (error) settlement?.reject(error);
    else settlement?.resolve();
  }

  #log(level: NetworkLogEvent['level'], message: string, error?: unknown): void {
    this.#options.log?.({ level, message, error });
  }
}
