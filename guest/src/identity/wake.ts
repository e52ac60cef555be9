// Prepares a guest that resumes or boots its disk: new secret, clock, random numbers and size;
// stale connections are aborted. Names and keys stay. Fails closed like an identity: the new secret
// takes effect first, and no call runs under it until every part is applied and read back.
import type { GuestSizeResult, GuestWake } from '@berth/protocol/calls/identity.ts';
import { ClockStep } from '../machine/clock.ts';
import type { IdentityMarker } from './marker.ts';
import type { Connection, KernelCalls } from '../machine/kernel-calls.ts';
import { part } from '../machine/part.ts';
import type { Secret } from '../access/secret.ts';
import { applySize } from '../machine/size.ts';

export class WakeStep {
  readonly #secret: Secret;
  /** Absent when wakes are stored but not applied. */
  readonly #machine: { kernel: KernelCalls; marker: IdentityMarker } | undefined;

  constructor(secret: Secret, machine: { kernel: KernelCalls; marker: IdentityMarker } | undefined) {
    this.#secret = secret;
    this.#machine = machine;
  }

  /**
   * Applies a wake received at `receivedAt` (`performance.now()`) on a connection that stays open.
   * Rejects with a message that names the failed part.
   */
  async apply(
    wake: GuestWake,
    receivedAt: number,
    connection: Connection,
    signal: AbortSignal,
  ): Promise<GuestSizeResult> {
    await part('secret', () => this.#secret.begin(wake.secret));
    const result = await this.#applyAll(wake, receivedAt, connection, signal);
    await part('secret', () => this.#secret.complete());
    return result;
  }

  async #applyAll(
    wake: GuestWake,
    receivedAt: number,
    connection: Connection,
    signal: AbortSignal,
  ): Promise<GuestSizeResult> {
    const { vcpu, memoryMib, diskGib } = wake;
    if (this.#machine === undefined) return { clockUnixMs: Date.now(), vcpu, memoryMib, diskGib };

    const { kernel, marker } = this.#machine;
    const clock = new ClockStep(wake, receivedAt);
    await part('clock and random numbers', () => clock.apply(kernel));
    await part('connections', () => kernel.abortConnections(connection));
    const size = await applySize(wake, signal);
    await part('marker', () => marker.put());
    return { clockUnixMs: await part('clock', () => clock.readBack()), ...size };
  }
}
