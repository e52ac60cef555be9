// Caps on machine hours: which cap holds, whether it is reached, and what those are told who meet
// it. Pure; used time is counted elsewhere.
//
//   the org's:     limit set ──> the limit │ not set, overage off ──> what the plan includes │ not set, overage on ──> none
//   a project's:   limit set ──> the limit, inside the org's cap   │ not set ──> none of its own
//   enforced:      the org's unless its overage is on; a project's always, for it is a budget within the org and not a matter of what is paid for
import type { Plan } from '@berth/contract/billing/plans.ts';
import { CodedError } from '../coded-error.ts';

const HOUR_MS = 3_600_000;

/** Shares of a cap, in percent, at which the activity feed warns. The last is the cap itself. */
export const WARNING_PERCENTS = [80, 100] as const;
export type WarningPercent = (typeof WARNING_PERCENTS)[number];

export interface OrgGuardrails {
  plan: Pick<Plan, 'includedMachineHours'>;
  /** What an org admin set; null: nothing. */
  limit: number | null;
  overageEnabled: boolean;
}

/** The org's cap in machine hours a period; null: none. */
export function effectiveCap({ plan, limit, overageEnabled }: OrgGuardrails): number | null {
  if (limit !== null) return limit;
  return overageEnabled ? null : plan.includedMachineHours;
}

/** The org's cap as far as work stops at it: with overage, work goes on and is counted. */
export function enforcedCap(guardrails: OrgGuardrails): number | null {
  return guardrails.overageEnabled ? null : effectiveCap(guardrails);
}

/** A project's cap in machine hours a period, inside the org's; null: none of its own. */
export function effectiveProjectCap(limit: number | null, org: OrgGuardrails): number | null {
  if (limit === null) return null;
  const around = enforcedCap(org);
  return around === null ? limit : Math.min(limit, around);
}

/** A cap in whole milliseconds of machine time, as usage is counted. */
export function capMs(hours: number): number {
  return Math.round(hours * HOUR_MS);
}

/** Whether work stops: the last millisecond of the cap is used. */
export function isAtCap(usedMs: number, hours: number): boolean {
  return usedMs >= capMs(hours);
}

/** The shares of the cap that are used, from the lowest on. */
export function warningsDue(usedMs: number, hours: number): WarningPercent[] {
  return WARNING_PERCENTS.filter((percent) => usedMs >= Math.ceil((capMs(hours) / 100) * percent));
}

/** Of whom a cap is. */
export type CapScope = { kind: 'org'; orgId: string } | { kind: 'project'; orgId: string; projectId: string };

/** How a scope stands to its cap. */
export interface CapStanding {
  scope: CapScope;
  /** In machine hours. */
  cap: number;
  usedMs: number;
  period: { startsAt: Date; endsAt: Date };
}

/** Throws `machine_hour_limit` naming cap, scope and remedy when the scope is at its cap. */
export function requireBelowCap(standing: CapStanding): void {
  if (isAtCap(standing.usedMs, standing.cap)) throw new CodedError('machine_hour_limit', describeCapReached(standing));
}

/** What people are told of a cap that is reached, and how to raise it. */
export function describeCapReached(standing: CapStanding): string {
  const { scope, cap, period } = standing;
  return (
    `the cap of ${nameOf(scope)} is ${inWords(cap)} in this billing period, and all of it is used; the period ends at ${period.endsAt.toISOString()}. ` +
    remedyOf(scope)
  );
}

/**
 * What people are told of the share of a cap that is used; `stops` null: work goes on beyond the
 * cap.
 */
export function describeWarning(
  standing: CapStanding,
  percent: WarningPercent,
  stops: { graceSeconds: number } | null,
): string {
  const { scope, cap, usedMs } = standing;
  const used = `${percent} % reached: ${hoursText(usedMs / HOUR_MS)} of the ${inWords(cap)} that are the cap of ${nameOf(scope)} in this billing period are used.`;
  if (stops === null) return `${used} Overage is on: work goes on beyond the cap and is counted.`;
  const grace = `what is awake goes to sleep ${stops.graceSeconds} s later, and ephemeral sandboxes end`;
  return `${used} At the cap nothing new is created or woken; ${grace}. ${remedyOf(scope)}`;
}

/** What of an awake sandbox its turn depends on. */
export interface SleepCandidate {
  mode: string;
  persistence_policy: string;
  status_reason_code: string | null;
  status_changed_at: Date;
}

/** A sandbox that could not be captured is tried again after this long. */
export const SLEEP_AGAIN_AFTER_MS = 60_000;

/**
 * Who is put to sleep, in turns: those that sleep by themselves at other times and those that end
 * anyway, and after them what is to be always on.
 */
export function inOrderOfSleep<Candidate extends SleepCandidate>(
  awake: readonly Candidate[],
  now: Date,
): Candidate[][] {
  const ready = awake.filter(
    ({ status_reason_code: code, status_changed_at: since }) =>
      code !== 'sleep_failed' || now.getTime() - since.getTime() >= SLEEP_AGAIN_AFTER_MS,
  );
  const isLast = ({ mode, persistence_policy: policy }: Candidate): boolean =>
    mode !== 'ephemeral' && policy === 'always_on';
  return [ready.filter((candidate) => !isLast(candidate)), ready.filter(isLast)];
}

function nameOf(scope: CapScope): string {
  return scope.kind === 'org' ? `the org ${scope.orgId}` : `the project ${scope.projectId}`;
}

function remedyOf(scope: CapScope): string {
  if (scope.kind === 'org') {
    return (
      `An org admin can raise it by PATCH /v1/orgs/${scope.orgId}/subscription/usage-guardrails with a higher sandboxMachineHourLimit, ` +
      'or let work go on beyond it with sandboxOverageEnabled true.'
    );
  }
  return (
    `An org admin can raise it by PATCH /v1/orgs/${scope.orgId}/projects/${scope.projectId}/usage-guardrails with a higher sandboxMachineHourLimit, ` +
    'or remove it with null.'
  );
}

function inWords(hours: number): string {
  return `${hoursText(hours)} machine hour${hours === 1 ? '' : 's'}`;
}

/** To the thousandth, which is 3.6 s. A cap that is smaller is told as it is. */
function hoursText(hours: number): string {
  const rounded = Math.floor(hours * 1_000 + 1e-6) / 1_000;
  return String(rounded === 0 ? hours : rounded);
}
