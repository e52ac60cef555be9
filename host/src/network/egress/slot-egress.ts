// Egress policy of one slot: the names that its guest may resolve, and the rules in the kernel.
// The kernel keeps the rules when the daemon ends; the next daemon reads them back (listing.ts).
import type { EgressDenied, EgressPolicy } from '@berth/protocol/egress.ts';
import { OPEN_EGRESS } from '@berth/protocol/egress.ts';
import { RateLimit } from '@berth/os/rate-limit.ts';
import { SerialQueue } from '@berth/os/serial-queue.ts';
import type { ResolvedAddress } from '../dns/addresses.ts';
import type { NameGate } from '../dns/resolver.ts';
import { isBlocked } from '../slots/blocked-ranges.ts';
import { runTool } from '../slots/locked-program.ts';
import type { Slot } from '../slots/slot.ts';
import { allowsName } from '../dns/names.ts';
import { DeniedAttempts } from './denied.ts';
import { LIST_TABLE, readTable, type LoadedTable } from './listing.ts';
import { egressRules, policyChain, RESOLVED_ADDRESSES, resolvedChange } from './rules.ts';
import type { AllowedAddress } from './rules.ts';

/** Bounds of a record's time to live. An address stays allowed for twice that time. */
const RESOLVED_SECONDS = { min: 60, max: 3_600 } as const;

/** Changes of the kernel's set per second that one guest can cause with its queries. */
const CHANGES_PER_SECOND = 20;
const CHANGES_BURST = 40;

const OPEN_CHAIN = policyChain(OPEN_EGRESS);

interface Resolved {
  /** Null if an earlier daemon resolved the address and the kernel does not have its name. */
  name: string | null;
  expiresAtMs: number;
}

export class SlotEgress implements NameGate {
  readonly #slot: Slot;
  readonly #queue = new SerialQueue();
  readonly #changes = new RateLimit(CHANGES_PER_SECOND, CHANGES_BURST);
  /** By address, in the order of their last renewal. */
  readonly #resolved = new Map<string, Resolved>();
  #policy: EgressPolicy = OPEN_EGRESS;
  /** Chain of the rules in the kernel; null if unknown. A new slot has no rules. */
  #loaded: string | null = OPEN_CHAIN;
  readonly #denied = new DeniedAttempts();
  /** The kernel's count of refused packets that `#denied` includes. */
  #refusedPackets = 0;

  constructor(slot: Slot) {
    this.#slot = slot;
  }

  /** Takes over an earlier daemon's rules: from here on only names of the policy are resolved. */
  adopt(policy: EgressPolicy): void {
    this.#policy = policy;
    this.#loaded = null;
  }

  /**
   * Enforces the policy. Resolved addresses of names that it still allows stay reachable. Does
   * nothing if the kernel enforces it already. Rejects with NetworkError; may be repeated.
   */
  async enforce(policy: EgressPolicy): Promise<void> {
    // At once: no name that only the former policy allows is resolved from here on.
    this.#policy = policy;
    await this.#queue.run(async () => {
      if (this.#loaded === null) await this.#readBack();
      const chain = policyChain(policy);
      if (this.#loaded === chain) return;
      this.#forgetExpired();
      for (const [address, { name }] of this.#resolved)
        if (name === null || !allowsName(policy, name)) this.#resolved.delete(address);
      // The rules to be replaced have the count.
      await this.#addRefused();
      // Unknown until the tool succeeded: it may fail after the rules changed.
      this.#loaded = null;
      await this.#nft('nft', egressRules(this.#slot, policy, policy.mode === 'allow' ? this.#allowed() : []));
      this.#loaded = chain;
      this.#refusedPackets = 0;
    });
  }

  policy(): EgressPolicy {
    return this.#policy;
  }

  refused(name: string | null): void {
    this.#denied.add(1, name === null ? [] : [name]);
  }

  /** Refused attempts up to the last {@link countDenied}; null if there were none. */
  denied(): EgressDenied | null {
    return this.#denied.report();
  }

  /** Adds the packets that the kernel refused. Never rejects. */
  async countDenied(): Promise<void> {
    if (this.#policy.mode !== 'open') await this.#queue.run(() => this.#addRefused());
  }

  async admit(name: string | null, addresses: readonly ResolvedAddress[]): Promise<boolean> {
    if (this.#policy.mode === 'open') return true;
    if (name === null) return false;
    const found = addresses.filter(({ address }) => !isBlocked(address));
    return this.#queue.run(async () => {
      // The policy may have changed while the question was relayed.
      if (!allowsName(this.#policy, name)) return false;
      if (this.#policy.mode !== 'allow') return true;
      return this.#renew(name, found);
    });
  }

  async #renew(name: string, found: readonly ResolvedAddress[]): Promise<boolean> {
    this.#forgetExpired();
    const now = performance.now();
    const added: AllowedAddress[] = [];
    for (const { address, ttlSeconds } of found) {
      const seconds = Math.min(RESOLVED_SECONDS.max, Math.max(RESOLVED_SECONDS.min, ttlSeconds));
      const known = this.#resolved.get(address);
      if (known !== undefined && known.expiresAtMs - now >= seconds * 1_000) continue;
      if (added.every((one) => one.address !== address)) added.push({ address, name, seconds: 2 * seconds });
    }
    if (added.length === 0) return true;
    if (!this.#changes.take()) return false;
    for (const { address, seconds } of added) {
      this.#resolved.delete(address);
      this.#resolved.set(address, { name, expiresAtMs: now + seconds * 1_000 });
    }
    const removed = [...this.#resolved.keys()].slice(0, Math.max(0, this.#resolved.size - RESOLVED_ADDRESSES));
    for (const address of removed) this.#resolved.delete(address);
    try {
      await this.#nft('nft', resolvedChange(added, removed));
      return true;
    } catch {
      // The kernel's set is unchanged; the guest repeats its question.
      for (const { address } of added) this.#resolved.delete(address);
      return false;
    }
  }

  #allowed(): AllowedAddress[] {
    const now = performance.now();
    return [...this.#resolved].map(([address, { name, expiresAtMs }]) => ({
      address,
      name,
      seconds: Math.max(1, Math.ceil((expiresAtMs - now) / 1_000)),
    }));
  }

  #forgetExpired(): void {
    const now = performance.now();
    for (const [address, { expiresAtMs }] of this.#resolved) if (expiresAtMs <= now) this.#resolved.delete(address);
  }

  /** Reads the rules and addresses of an earlier daemon. Changes nothing if that fails. */
  async #readBack(): Promise<void> {
    const table = await this.#list();
    if (table === null) return;
    const now = performance.now();
    const left = table.resolved.map(({ address, name, seconds }): [string, Resolved] => [
      address,
      { name, expiresAtMs: now + seconds * 1_000 },
    ]);
    const added = [...this.#resolved];
    this.#resolved.clear();
    for (const [address, resolved] of [...left, ...added]) this.#resolved.set(address, resolved);
    this.#loaded = table.chain;
    this.#refusedPackets = table.denied.packets;
  }

  async #addRefused(): Promise<void> {
    if (this.#loaded === null || this.#loaded === OPEN_CHAIN) return;
    const table = await this.#list();
    if (table === null) return;
    const { packets, addresses } = table.denied;
    if (packets > this.#refusedPackets) this.#denied.add(packets - this.#refusedPackets, addresses);
    this.#refusedPackets = packets;
  }

  /** Null if the slot has no rules, or they cannot be read. */
  async #list(): Promise<LoadedTable | null> {
    return readTable(await this.#nft(...LIST_TABLE).catch(() => ''));
  }

  async #nft(...command: string[]): Promise<string> {
    const inside = ['nsenter', `--net=${this.#slot.namespacePath}`, ...command];
    return runTool(`Egress policy of network slot ${this.#slot.number}`, ['setpriv', '--pdeathsig', 'KILL', ...inside]);
  }
}
