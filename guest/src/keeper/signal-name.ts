// Names of signals.
import { constants } from 'node:os';

/** Returns the name of a signal, such as SIGTERM. */
export function signalName(signal: number): string {
  const known = Object.entries(constants.signals).find(([, number]) => number === signal);
  return known?.[0] ?? `SIG${signal}`;
}
