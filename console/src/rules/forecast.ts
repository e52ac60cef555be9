// Machine hours at the end of a billing period, if the org goes on as in the period so far.
import type { api } from '@berth/sdk';

/** A younger period says nothing about its end. */
const LEAST_MS = 86_400_000;

export interface Forecast {
  machineHours: number;
  /** Time at which the cap is reached; null: not in this period. */
  capAt: string | null;
}

type Usage = Pick<api.OrgUsage, 'periodStartsAt' | 'periodEndsAt' | 'usedMachineHours' | 'sandboxMachineHourLimit'>;

/** null if unknown. */
export function forecastOf(usage: Usage, now: number): Forecast | null {
  const { usedMachineHours: used, sandboxMachineHourLimit: cap } = usage;
  const [start, end] = [Date.parse(usage.periodStartsAt), Date.parse(usage.periodEndsAt)];
  if (used === 0 || now - start < LEAST_MS || now >= end) return null;
  const perMs = used / (now - start);
  const capAt = cap === null || cap <= used ? end : start + cap / perMs;
  return { machineHours: perMs * (end - start), capAt: capAt < end ? new Date(capAt).toISOString() : null };
}
