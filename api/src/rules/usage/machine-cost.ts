// Estimated cost of machine time. Pure.
import type { MachineRates } from '@berth/contract/billing/machine-rates.ts';

const HOUR_MS = 3_600_000;

interface MachineTime {
  vcpu: number;
  memoryGb: number;
  diskGb: number;
  ms: number;
}

/** Machine hours of whole milliseconds, divided once at the end. */
export function machineHours(ms: number): number {
  return ms / HOUR_MS;
}

/** US dollars rounded to millionths. Sums whole milliseconds of each resource. */
export function estimatedCostUsd(times: readonly MachineTime[], rates: MachineRates): number {
  const sumMs = (amountOf: (time: MachineTime) => number): number =>
    times.reduce((sum, time) => sum + time.ms * amountOf(time), 0);
  const usd =
    machineHours(sumMs(({ vcpu }) => vcpu)) * rates.vcpuHourUsd +
    machineHours(sumMs(({ memoryGb }) => memoryGb)) * rates.memoryGbHourUsd +
    machineHours(sumMs(({ diskGb }) => diskGb)) * rates.diskGbHourUsd;
  return toMillionths(usd);
}

/** Rounds US dollars to millionths. */
export function toMillionths(usd: number): number {
  return Math.round(usd * 1_000_000) / 1_000_000;
}
