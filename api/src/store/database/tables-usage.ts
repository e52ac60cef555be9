// The tables of plans, payments and metered machine time, as Kysely sees them (schema.ts); columns
// are named as in the database.
import type { SubscriptionStatus } from '@berth/contract/billing/billing.ts';
import type { Generated } from 'kysely';
import type { GeneratedInstant, Instant } from './column-types.ts';

export interface SubscriptionTable {
  org_id: string;
  /** Its name in the plan catalogue. */
  plan: string;
  /**
   * `past_due`: the payment provider still tries to collect, and the plan stays in force.
   * `canceled`: it is over.
   */
  status: SubscriptionStatus;
  /** Of one that is paid for: when the provider made it. */
  started_at: GeneratedInstant;
  /**
   * Periods begin on this instant's day of the month and time of day, in UTC
   * (rules/billing-period.ts); may be ahead, as of a trial.
   */
  period_anchor: GeneratedInstant;
  /**
   * Guardrail of the org's admins: the cap of a period in machine hours; null: none of their own.
   */
  machine_hour_limit: number | null;
  overage_enabled: Generated<boolean>;
  canceled_at: Instant | null;
  /** When it will be over, if that is known ahead. */
  cancels_at: Instant | null;
  /** The payment provider's customer, who stays when a subscription ends. */
  provider_customer_id: string | null;
  /**
   * The payment provider's subscription that the row follows; null: the plan is the operator's
   * gift.
   */
  provider_subscription_id: string | null;
  /** The checkout that was begun last. */
  provider_checkout_id: string | null;
  /**
   * Goes up with everything taken over from the provider: what was asked of it before is then out
   * of date.
   */
  provider_revision: Generated<number>;
}

/** Events of the payment provider that were dealt with. */
export interface PaymentEventTable {
  id: string;
  kind: string;
  received_at: GeneratedInstant;
}

export interface UsageIntervalTable {
  id: string;
  sandbox_id: string;
  org_id: string;
  project_id: string;
  end_user_id: string | null;
  vcpu: number;
  memory_gb: number;
  disk_gb: number;
  /** Text form of a tstzrange; read its bounds with lower() and upper(). */
  during: Generated<string>;
}

/** A closed interval that is in no sum yet. */
export interface UsageUnrolledTable {
  interval_id: string;
  org_id: string;
  /** Orders them by their closing. A bigint: text. */
  seq: Generated<string>;
}

/** Where a billing period of the org begins. */
export interface UsageCutTable {
  org_id: string;
  at: Instant;
}

/**
 * A stretch of time whose closed intervals are summed; `first_at` and `last_at` enclose what is in
 * the sums.
 */
export interface UsageSpanTable {
  org_id: string;
  level: 'day' | 'period';
  starts_at: Instant;
  ends_at: Instant;
  first_at: Instant;
  last_at: Instant;
}

export interface UsageTotalTable {
  org_id: string;
  level: 'day' | 'period';
  /** Of its span. */
  starts_at: Instant;
  project_id: string;
  end_user_id: string | null;
  vcpu: number;
  memory_gb: number;
  disk_gb: number;
  /** A bigint: text. */
  ms: string;
}

/** Warnings given of a cap on machine hours. `scope_id`: an org's id or a project's. */
export interface UsageCapWarningTable {
  scope_id: string;
  period_starts_at: Instant;
  cap_hours: number;
  percent: number;
  /** What it said: work stops at the cap, or goes on. */
  enforced: boolean;
  org_id: string;
  warned_at: GeneratedInstant;
}

/** Who is at a cap that is enforced, since when that was first seen. */
export interface UsageCapReachedTable {
  scope_id: string;
  org_id: string;
  project_id: string | null;
  period_starts_at: Instant;
  cap_hours: number;
  since: Instant;
}
