// What a machine needs when it goes on after a sleep, or when its disk was booted: a fresh secret,
// the time, fresh random numbers, no connection whose other end is long gone, and the size it shall
// have. Names and keys stay. Fails closed as an identity does: the new secret is in force first,
// and nothing runs under it before every part was applied and read back.
import type { GuestSizeResult, GuestWake } from '@berth/protocol/calls/identity.ts';
import { ClockStep } from '../machine/clock.ts';
import type { IdentityMarker } from './marker.ts';
import type { Connection, KernelCalls } from '../machine/kernel-calls.ts';
import { part } from '../machine/part.ts';
import type { Secret } from '../access/secret.ts';
import { bringToSize } from '../machine/size.ts';

export class WakeStep {
  readonly #secret: Secret;
  /** Absent when wakes are only kept. */
  readonly #machine: { kernel: KernelCalls; marker: IdentityMarker } | undefined;

  constructor(secret: Secret, machine: { kernel: KernelCalls; marker: IdentityMarker } | undefined) {
    this.#secret = secret;
    this.#machine = machine;
  }

  /**
   * Applies a wake that was received at `receivedAt` (of `performance.now()`) on a connection that
   * stays. Rejects with a message that names the part that failed.
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
    const size = await bringToSize(wake, signal);
    await part('marker', () => marker.put());
    return { clockUnixMs: await part('clock', () => clock.readBack()), ...size };
  }
}
