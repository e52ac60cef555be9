// Makes and unmakes slots on the host: registry entry, kernel objects, DNS listener, in an order
// that survives a kill at any moment.
//
//   make:    entry -> namespace, veth, TAP, rules (one program) -> listener
//   unmake:  listener -> namespace, veth (one program) -> entry
//
// Tracks its own slots; network.ts tracks which of them are idle or claimed.
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { nullIf } from '@berth/os/errors.ts';
import { runUnderNetworkLock, type Program } from './slots/locked-program.ts';
import { enterSlot, enteredNumbers, lockFile, removeEntry } from './slots/registry.ts';
import type { SlotEntry } from './slots/registry.ts';
import type { Resolver, ServedGuest } from './dns/resolver.ts';
import { keepFromNetworkd } from './slots/networkd.ts';
import { makeProgram, removeRootRulesProgram, unmakeProgram } from './slots/slot-programs.ts';
import { SlotEgress } from './egress/slot-egress.ts';
import { NetworkError, hostVethName, slotOf } from './slots/slot.ts';
import type { GuestCidr, Slot } from './slots/slot.ts';

/** File in the registry folder that lists the changes made to the host. */
const CHANGES_FILE = '.machine-changes';

const FORWARDING_CHANGE = 'set net.ipv4.ip_forward from 0 to 1: guests reach the internet through this host.';

interface SlotMakerOptions {
  instanceId: string;
  dataFolder: string;
  cidr: GuestCidr;
  registryFolder: string;
  rateMbit: number | undefined;
  resolver: Resolver;
}

export class SlotMaker {
  readonly #options: SlotMakerOptions;
  /**
   * Slots entered or taken over by this object and not unmade; the listener is null until there is
   * one.
   */
  readonly #own = new Map<number, ServedGuest | null>();
  readonly #egress = new Map<number, SlotEgress>();
  /**
   * Start of the next search for a free number. Starts at random and wraps around, so that numbers
   * are reused late: connection tracking may keep their flows for days.
   */
  #next: number;

  constructor(options: SlotMakerOptions) {
    this.#options = options;
    this.#next = Math.floor(Math.random() * options.cidr.slotCount);
  }

  /**
   * True for this object's slots, also half-made ones. The instance's other slots were left by an
   * earlier daemon.
   */
  has(number: number): boolean {
    return this.#own.has(number);
  }

  /**
   * Enables forwarding and loads the shared rules of the root namespace. Resolves with the changes,
   * like {@link make}.
   */
  async prepareHost(): Promise<string[]> {
    const told = await keepFromNetworkd();
    return [...(told === null ? [] : [told]), ...(await this.#runMake([]))];
  }

  /**
   * Makes up to `count` slots: fewer, or none, if numbers run out. A failure leaves nothing behind.
   */
  async make(count: number): Promise<{ slots: Slot[]; changes: string[] }> {
    const numbers: number[] = [];
    try {
      await this.#enter(count, numbers);
      const slots = numbers.map((number) => slotOf(this.#options.cidr, number));
      if (slots.length === 0) return { slots, changes: [] };
      const changes = await this.#runMake(slots);
      // Await all: a listener that came up after its slot was unmade would hold the address for the
      // daemon's lifetime.
      const served = await Promise.allSettled(slots.map((slot) => this.serve(slot)));
      const failed = served.find((result) => result.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
      return { slots, changes };
    } catch (error) {
      await this.remove(numbers);
      throw error;
    }
  }

  /**
   * Unmakes slots entered by this instance, from any half-made state. On failure their entries stay
   * for a retry.
   */
  async remove(numbers: readonly number[]): Promise<void> {
    if (numbers.length === 0) return;
    for (const number of numbers) this.stopServing(number);
    try {
      await removeSlots(this.#options.registryFolder, numbers);
    } finally {
      for (const number of numbers) {
        // Again: an adoption may have added a listener meanwhile.
        this.stopServing(number);
        this.#own.delete(number);
        this.#egress.delete(number);
      }
    }
  }

  egressOf(slot: Slot): SlotEgress {
    const egress = this.#egress.get(slot.number) ?? new SlotEgress(slot);
    this.#egress.set(slot.number, egress);
    return egress;
  }

  /** Listens for DNS questions of the slot's guest. Idempotent. */
  async serve(slot: Slot): Promise<void> {
    if (this.#own.get(slot.number)) return;
    try {
      this.#own.set(slot.number, await this.#options.resolver.serve(slot.hostAddress, this.egressOf(slot)));
    } catch (error) {
      throw new NetworkError(`Listening for DNS queries on slot ${slot.number}: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }

  stopServing(number: number): void {
    this.#own.get(number)?.close();
    if (this.#own.has(number)) this.#own.set(number, null);
  }

  /** Removes the shared rules of the root namespace once no instance on the host has a slot. */
  async removeRootRules(): Promise<void> {
    await this.#run(
      'Removing the firewall of the root namespace',
      removeRootRulesProgram(this.#options.registryFolder),
    );
  }

  /** Names of the slot's missing namespace and devices; empty if all exist. */
  async missingParts(slot: Slot): Promise<string[]> {
    const missing: string[] = [];
    if (!(await isThere(slot.namespacePath))) missing.push(`namespace ${slot.namespace}`);
    if (!(await networkDevices()).has(slot.hostVeth)) missing.push(`device ${slot.hostVeth}`);
    return missing;
  }

  /**
   * Takes up to `count` numbers with no registry entry and no existing kernel objects of that name.
   * Adds each to `entered` at once, so that the caller can release them if a later one fails.
   */
  async #enter(count: number, entered: number[]): Promise<void> {
    const { cidr, registryFolder, instanceId, dataFolder } = this.#options;
    const entry: SlotEntry = { instanceId, dataFolder, vmId: null };
    const taken = new Set(await enteredNumbers(registryFolder));
    const devices = await networkDevices();
    for (let tried = 0; tried < cidr.slotCount && entered.length < count; tried += 1) {
      const number = this.#next;
      this.#next = (this.#next + 1) % cidr.slotCount;
      if (taken.has(number) || devices.has(hostVethName(number))) continue;
      if (await isThere(slotOf(cidr, number).namespacePath)) continue;
      // Own it before the entry is visible: a concurrent reap must know it.
      this.#own.set(number, null);
      const won = await enterSlot(registryFolder, number, entry).catch((error: unknown) => {
        this.#own.delete(number);
        throw error;
      });
      if (won) entered.push(number);
      else this.#own.delete(number);
    }
  }

  async #runMake(slots: readonly Slot[]): Promise<string[]> {
    const names = slots.map((slot) => slot.number).join(', ');
    const step = slots.length > 0 ? `Creating network slot ${names}` : "Preparing the host's network";
    const output = await this.#run(step, makeProgram(slots, this.#options.rateMbit));
    if (!output.includes('ip_forward')) return [];
    const line = `${new Date().toISOString()} ${FORWARDING_CHANGE}\n`;
    await writeFile(join(this.#options.registryFolder, CHANGES_FILE), line, { flag: 'a', mode: 0o600 });
    return [FORWARDING_CHANGE];
  }

  #run(step: string, program: Program): Promise<string> {
    return runUnderNetworkLock(step, program, lockFile(this.#options.registryFolder));
  }
}

/**
 * Unmakes slots of any owner, then removes their entries. Rejects with {@link NetworkError} if
 * something remains.
 */
export async function removeSlots(registryFolder: string, numbers: readonly number[]): Promise<void> {
  const step = `Removing network slot ${numbers.join(', ')}`;
  const left = (await runUnderNetworkLock(step, unmakeProgram(numbers), lockFile(registryFolder))).trim();
  if (left !== '') throw new NetworkError(`${step}: not removed: ${left.replaceAll('\n', ', ')}`);
  for (const number of numbers) await removeEntry(registryFolder, number);
}

export async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(nullIf('ENOENT'))) !== null;
}

async function networkDevices(): Promise<Set<string>> {
  const lines = (await readFile('/proc/self/net/dev', 'utf8')).split('\n').slice(2);
  return new Set(lines.map((line) => line.split(':')[0]?.trim() ?? ''));
}
