// Makes and unmakes slots on the machine: registry entry, kernel objects, DNS listener, in the
// order that survives a kill at any moment.
//
//   make:    entry -> namespace, veth, TAP, rules (one script) -> listener
//   unmake:  listener -> namespace, veth (one script) -> entry
//
// Knows which slots are its own; which of them are idle or claimed is the pool's business.
import { access, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runMachineScript } from './slots/machine-script.ts';
import { enterSlot, enteredNumbers, lockFile, removeEntry } from './slots/registry.ts';
import type { SlotEntry } from './slots/registry.ts';
import type { Resolver, ServedGuest } from './dns/resolver.ts';
import { makeScript, removeRootRulesScript, unmakeScript } from './slots/slot-scripts.ts';
import { NetworkError, hostVethName, slotOf } from './slots/slot.ts';
import type { GuestCidr, Slot } from './slots/slot.ts';

/** File in the registry's folder that says what was changed on the machine. */
const CHANGES_FILE = '.machine-changes';

const FORWARDING_CHANGE = 'net.ipv4.ip_forward was 0 and is 1 now: guests reach the internet through this machine.';

interface SlotMakerOptions {
  instanceId: string;
  dataFolder: string;
  cidr: GuestCidr;
  registryFolder: string;
  resolver: Resolver;
}

export class SlotMaker {
  readonly #options: SlotMakerOptions;
  /**
   * Slots this object has entered or taken over, and not unmade; with the listener once there is
   * one.
   */
  readonly #own = new Map<number, ServedGuest | null>();
  /**
   * Where the search for a free number goes on. It goes round: the machine's connection tracking
   * may remember flows of a number for days, so a number rests as long as it can. Random at first,
   * for the same reason.
   */
  #next: number;

  constructor(options: SlotMakerOptions) {
    this.#options = options;
    this.#next = Math.floor(Math.random() * options.cidr.slotCount);
  }

  /**
   * Whether this object has the slot, be it half made. Other slots of the instance were left by an
   * earlier daemon.
   */
  has(number: number): boolean {
    return this.#own.has(number);
  }

  /**
   * Brings forwarding and the shared rules of the root namespace up to date. Resolves with what was
   * changed, as {@link make} does.
   */
  prepareMachine(): Promise<string[]> {
    return this.#applyMakeScript([]);
  }

  /**
   * Makes up to `count` slots, fewer when no more numbers are free, none when none is. On failure
   * nothing is left of them.
   */
  async make(count: number): Promise<{ slots: Slot[]; changes: string[] }> {
    const numbers: number[] = [];
    try {
      await this.#enter(count, numbers);
      const slots = numbers.map((number) => slotOf(this.#options.cidr, number));
      if (slots.length === 0) return { slots, changes: [] };
      const changes = await this.#applyMakeScript(slots);
      // All to their end: a listener that came up after its slot was unmade would be nobody's, and
      // hold the address for as long as the daemon lives.
      const served = await Promise.allSettled(slots.map((slot) => this.serve(slot)));
      const failed = served.find((result) => result.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
      return { slots, changes };
    } catch (error) {
      await this.unmake(numbers);
      throw error;
    }
  }

  /**
   * Unmakes slots this instance has entered, from any half-made state. On failure their entries
   * stay, for the next try.
   */
  async unmake(numbers: readonly number[]): Promise<void> {
    if (numbers.length === 0) return;
    for (const number of numbers) this.stopServing(number);
    try {
      await unmakeSlots(this.#options.registryFolder, numbers);
    } finally {
      for (const number of numbers) {
        // Once more: one that was being adopted may have got its listener meanwhile.
        this.stopServing(number);
        this.#own.delete(number);
      }
    }
  }

  /** Listens for the questions of a slot's guest, unless it does already. */
  async serve(slot: Slot): Promise<void> {
    if (this.#own.get(slot.number)) return;
    try {
      this.#own.set(slot.number, await this.#options.resolver.serve(slot.hostAddress));
    } catch (error) {
      throw new NetworkError(`Listening for DNS questions on slot ${slot.number}: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }

  stopServing(number: number): void {
    this.#own.get(number)?.close();
    if (this.#own.has(number)) this.#own.set(number, null);
  }

  /**
   * Takes the shared rules of the root namespace away when no instance on the machine has a slot
   * any more.
   */
  async removeRootRules(): Promise<void> {
    await this.#run('Removing the firewall of the root namespace', removeRootRulesScript(this.#options.registryFolder));
  }

  /**
   * The names of a slot that are missing on the machine; empty when it is whole as far as names
   * tell.
   */
  async missingParts(slot: Slot): Promise<string[]> {
    const missing: string[] = [];
    if (!(await isThere(slot.namespacePath))) missing.push(`namespace ${slot.namespace}`);
    if (!(await networkDevices()).has(slot.hostVeth)) missing.push(`device ${slot.hostVeth}`);
    return missing;
  }

  /**
   * Takes up to `count` free numbers: no instance has entered them, and nobody who keeps no
   * registry uses their names. `entered` has each from the moment it is taken, so that the caller
   * can give them back when a later one fails.
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
      // Its own before the entry can be seen: a reap that reads the registry now must know it.
      this.#own.set(number, null);
      const won = await enterSlot(registryFolder, number, entry).catch((error: unknown) => {
        this.#own.delete(number);
        throw error;
      });
      if (won) entered.push(number);
      else this.#own.delete(number);
    }
  }

  async #applyMakeScript(slots: readonly Slot[]): Promise<string[]> {
    const names = slots.map((slot) => slot.number).join(', ');
    const step = slots.length > 0 ? `Making network slot ${names}` : 'Making the network of the machine ready';
    const output = await this.#run(step, makeScript(slots));
    if (!output.includes('ip_forward')) return [];
    const line = `${new Date().toISOString()} ${FORWARDING_CHANGE}\n`;
    await writeFile(join(this.#options.registryFolder, CHANGES_FILE), line, { flag: 'a', mode: 0o600 });
    return [FORWARDING_CHANGE];
  }

  #run(step: string, script: string): Promise<string> {
    return runMachineScript(step, script, lockFile(this.#options.registryFolder));
  }
}

/**
 * Unmakes slots whoever made them, and then removes their entries. Rejects with {@link
 * NetworkError} when something is still there.
 */
export async function unmakeSlots(registryFolder: string, numbers: readonly number[]): Promise<void> {
  const step = `Removing network slot ${numbers.join(', ')}`;
  const left = (await runMachineScript(step, unmakeScript(numbers), lockFile(registryFolder))).trim();
  if (left !== '') throw new NetworkError(`${step}: still there afterwards: ${left.replaceAll('\n', ', ')}`);
  for (const number of numbers) await removeEntry(registryFolder, number);
}

/** Whether the path exists. */
export async function isThere(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

/** Names of the network devices in the daemon's own namespace. */
async function networkDevices(): Promise<Set<string>> {
  const lines = (await readFile('/proc/self/net/dev', 'utf8')).split('\n').slice(2);
  return new Set(lines.map((line) => line.split(':')[0]?.trim() ?? ''));
}
