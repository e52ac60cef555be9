// The statuses that a caller waits for.
import { SANDBOX_STATES } from '../generated/contract-tables.ts';
import type { Sandbox as SandboxData, SandboxStatus } from '../generated/raw/index.ts';

/** A status, several, or a predicate. */
export type Awaited =
  | SandboxStatus
  | (string & {})
  | readonly (SandboxStatus | (string & {}))[]
  | ((sandbox: SandboxData) => boolean);

export function matcherOf(wanted: Awaited): (sandbox: SandboxData) => boolean {
  if (typeof wanted === 'function') return wanted;
  const statuses = new Set<string>(typeof wanted === 'string' ? [wanted] : wanted);
  // `ready` implies `running`.
  if (statuses.has('running')) statuses.add('ready');
  return ({ status }) => statuses.has(status);
}

export function shown(wanted: Awaited): string {
  if (typeof wanted === 'function') return 'in the requested state';
  return typeof wanted === 'string' ? wanted : wanted.join(' or ');
}

/** Reports whether no transition is in progress. Unknown statuses do not count as settled. */
export function isSettled(status: string): boolean {
  return (SANDBOX_STATES as Readonly<Record<string, { settled: boolean } | undefined>>)[status]?.settled === true;
}

/** Reports whether the status is final. */
export function isOver(status: string): boolean {
  return status === 'failed' || status === 'deleted';
}
