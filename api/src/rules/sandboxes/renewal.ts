// Renewal of ephemeral sandboxes, and its limit by the plan. Pure.
import type { Plan } from '@berth/contract/billing/plans.ts';
import { CodedError } from '../coded-error.ts';
import { describePlan } from '../billing/plan-limits.ts';

export interface Session {
  createdAt: Date;
  expiresAt: Date;
  ttlSeconds: number;
}

/** The expiry after one more renewal: `ttlSeconds` after the current one. */
export function renewedExpiry({ expiresAt, ttlSeconds }: Session): Date {
  return new Date(expiresAt.getTime() + ttlSeconds * 1_000);
}

/**
 * Throws `session_cap_exhausted` if the renewed lifetime, counted from the create, would exceed the
 * plan's limit.
 */
export function requireRenewalWithinPlan(plan: Plan, session: Session): void {
  const cap = plan.ephemeralSessionSeconds;
  if (cap === null) return;
  const renewedSeconds = (renewedExpiry(session).getTime() - session.createdAt.getTime()) / 1_000;
  if (renewedSeconds <= cap) return;
  throw new CodedError(
    'session_cap_exhausted',
    `${describePlan(plan)} allows ephemeral sandboxes to live up to ${cap} s; ` +
      `renewed, this one would live ${renewedSeconds} s`,
  );
}
