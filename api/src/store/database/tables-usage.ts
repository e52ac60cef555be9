// Kysely types of the tables of plans, payments and metered time (schema.ts). Columns are named as
// in the database.
import type { SubscriptionStatus } from '@berth/contract/billing/billing.ts';
import type { Generated } from 'kysely';
import type { GeneratedInstant, Instant } from './column-types.ts';

export interface SubscriptionTable {
  org_id: string;
  /** Name in the plan catalogue. */
  plan: string;
  /** `past_due`: payment is still being collected; the plan stays in force. `canceled`: ended. */
  status: SubscriptionStatus;
  /** For a paid subscription: when the provider created it. */
  started_at: GeneratedInstant;
  /**
   * Periods start at this day of the month and time of day, in UTC (rules/billing/period.ts). May
   * be in the future, e.g. for a trial.
   */
  period_anchor: GeneratedInstant;
  /** Guardrail set by the org's admins: machine hours per period; null: none. */
  machine_hour_limit: number | null;
  overage_enabled: Generated<boolean>;
  canceled_at: Instant | null;
  /** Scheduled end of the subscription, if known. */
  cancels_at: Instant | null;
  /** The payment provider's customer. Kept when a subscription ends. */
  provider_customer_id: string | null;
  /** The provider subscription that the row follows; null: the operator granted the plan. */
  provider_subscription_id: string | null;
  /** The most recent checkout. */
  provider_checkout_id: string | null;
  /** Raised with every state taken from the provider. Responses requested before that are stale. */
  provider_revision: Generated<number>;
}

/** Processed events of the payment provider. */
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

/** A closed interval that is not summed yet. */
export interface UsageUnrolledTable {
  interval_id: string;
  org_id: string;
  /** Orders intervals by closing. A bigint: text. */
  seq: Generated<string>;
}

/** Start of a billing period of the org. */
export interface UsageCutTable {
  org_id: string;
  at: Instant;
}

/** A span of summed closed intervals; `first_at` and `last_at` enclose the summed time. */
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
  /** Start of the span. */
  starts_at: Instant;
  project_id: string;
  end_user_id: string | null;
  vcpu: number;
  memory_gb: number;
  disk_gb: number;
  /** A bigint: text. */
  ms: string;
}

/** Warnings sent about caps on machine hours. `scope_id`: an org or project id. */
export interface UsageCapWarningTable {
  scope_id: string;
  period_starts_at: Instant;
  cap_hours: number;
  percent: number;
  /** Content of the warning: work stops at the cap (true) or continues. */
  enforced: boolean;
  org_id: string;
  warned_at: GeneratedInstant;
}

/** Scopes at an enforced cap, with the time of the first observation. */
export interface UsageCapReachedTable {
  scope_id: string;
  org_id: string;
  project_id: string | null;
  period_starts_at: Instant;
  cap_hours: number;
  since: Instant;
}
