// Caps on machine hours: the cap in force, whether it is reached, and the messages about it. Pure;
// usage is metered elsewhere.
//
//   org:      limit set                   -> the limit
//             no limit, overage off       -> the hours included in the plan
//             no limit, overage on        -> no cap
//   project:  limit set                   -> the limit, within the org's cap
//             no limit                    -> no cap of its own
//   enforced: the org's cap unless overage is on; a project's cap always, since it is a budget
//             within the org and independent of payment
import type { Plan } from '@berth/contract/billing/plans.ts';
import { CodedError } from '../coded-error.ts';

const HOUR_MS = 3_600_000;

/** Percentages of a cap at which the activity feed warns. The last is the cap itself. */
const WARNING_PERCENTS = [80, 100] as const;
export type WarningPercent = (typeof WARNING_PERCENTS)[number];

export interface OrgGuardrails {
  plan: Pick<Plan, 'includedMachineHours'>;
  /** Limit set by an org admin; null: none. */
  limit: number | null;
  overageEnabled: boolean;
}

/** The org's cap in machine hours per period; null: none. */
export function effectiveCap({ plan, limit, overageEnabled }: OrgGuardrails): number | null {
  if (limit !== null) return limit;
  return overageEnabled ? null : plan.includedMachineHours;
}

/** The org's enforced cap: none with overage, where usage beyond the cap is metered. */
export function enforcedCap(guardrails: OrgGuardrails): number | null {
  return guardrails.overageEnabled ? null : effectiveCap(guardrails);
}

/** A project's cap in machine hours per period, within the org's; null: none. */
export function effectiveProjectCap(limit: number | null, org: OrgGuardrails): number | null {
  if (limit === null) return null;
  const around = enforcedCap(org);
  return around === null ? limit : Math.min(limit, around);
}

/** A cap in whole milliseconds of machine time, the unit of metering. */
export function capMs(hours: number): number {
  return Math.round(hours * HOUR_MS);
}

export function isAtCap(usedMs: number, hours: number): boolean {
  return usedMs >= capMs(hours);
}

/** The warning percentages that are reached, ascending. */
export function warningsDue(usedMs: number, hours: number): WarningPercent[] {
  return WARNING_PERCENTS.filter((percent) => usedMs >= Math.ceil((capMs(hours) / 100) * percent));
}

/** The owner of a cap. */
export type CapScope = { kind: 'org'; orgId: string } | { kind: 'project'; orgId: string; projectId: string };

/** Usage of a scope relative to its cap. */
export interface CapUsage {
  scope: CapScope;
  /** In machine hours. */
  cap: number;
  usedMs: number;
  period: { startsAt: Date; endsAt: Date };
}

/** Throws `machine_hour_limit`, naming cap, scope and remedy, if the scope is at its cap. */
export function requireBelowCap(capUsage: CapUsage): void {
  if (isAtCap(capUsage.usedMs, capUsage.cap)) throw new CodedError('machine_hour_limit', describeCapReached(capUsage));
}

/** Message about a reached cap, with the way to raise it. */
export function describeCapReached(capUsage: CapUsage): string {
  const { scope, cap, period } = capUsage;
  return (
    `the cap of ${nameOf(scope)} is ${inWords(cap)} in this billing period ` +
    `and is used up; the period ends at ${period.endsAt.toISOString()}. ` +
    remedyOf(scope)
  );
}

/** Message about a reached warning percentage. `stops` null: work continues beyond the cap. */
export function describeWarning(
  capUsage: CapUsage,
  percent: WarningPercent,
  stops: { graceSeconds: number } | null,
): string {
  const { scope, cap, usedMs } = capUsage;
  const used =
    `${percent} % of the cap of ${nameOf(scope)} reached: ` +
    `${hoursText(usedMs / HOUR_MS)} of ${inWords(cap)} are used in this billing period.`;
  if (stops === null)
    return `${used} Overage is enabled: sandboxes continue beyond the cap, and the excess is metered.`;
  const grace = `awake sandboxes go to sleep ${stops.graceSeconds} s later, and ephemeral ones are destroyed`;
  return `${used} At the cap no sandbox can be created or woken; ${grace}. ${remedyOf(scope)}`;
}

/** Facts about a running sandbox that decide its turn. */
interface SleepCandidate {
  mode: string;
  persistence_policy: string;
  status_reason_code: string | null;
  status_changed_at: Date;
}

/** Delay before retrying the sleep of a sandbox whose capture failed. */
export const SLEEP_AGAIN_AFTER_MS = 60_000;

/**
 * Orders sandboxes for sleep: first those that sleep by themselves or expire, then always-on ones.
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
      `An org admin can raise it with PATCH /v1/orgs/${scope.orgId}/subscription/usage-guardrails ` +
      'and a higher sandboxMachineHourLimit, ' +
      'or allow usage beyond it with sandboxOverageEnabled true.'
    );
  }
  return (
    `An org admin can raise it with PATCH /v1/orgs/${scope.orgId}/projects/${scope.projectId}/usage-guardrails ` +
    'and a higher sandboxMachineHourLimit, ' +
    'or remove it with null.'
  );
}

function inWords(hours: number): string {
  return `${hoursText(hours)} machine hour${hours === 1 ? '' : 's'}`;
}

/** Machine hours, rounded down to three decimals (3.6 s); less than that to three digits. */
export function hoursText(hours: number): string {
  // toFixed() takes at most 100 digits.
  const places = hours > 0 && hours < 0.001 ? Math.min(100, 2 - Math.floor(Math.log10(hours))) : 3;
  const rounded = Math.floor(hours * 10 ** places + 1e-6) / 10 ** places;
  // String() writes small numbers with an exponent.
  return rounded.toFixed(places).replace(/\.?0+$/, '');
}
