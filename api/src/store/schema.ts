// The tables as Kysely sees them: one interface a table, columns named as in the database. Mirrors ../../migrations; holds no queries.
import type { SubscriptionStatus } from '@berth/contract/billing.ts';
import type { SandboxStatus } from '@berth/contract/sandbox-state.ts';
import type { ColumnType, Generated, Insertable, Kysely, Selectable, Transaction } from 'kysely';

type Instant = Date;
type GeneratedInstant = ColumnType<Date, Date | undefined, Date>;
/** jsonb: read as a value, written as JSON text. */
type Json<T> = ColumnType<T, string, string>;

/** The sign-in library's user table: its column names are camelCase. */
export interface UserTable {
  id: string;
  name: string;
  email: string;
  emailVerified: boolean;
  image: string | null;
  createdAt: GeneratedInstant;
  updatedAt: GeneratedInstant;
}

/** The sign-in library's: a login, which a refresh token or the console's cookie stands for. */
export interface LoginTable {
  id: string;
  expiresAt: Date;
  token: string;
  createdAt: GeneratedInstant;
  updatedAt: Date;
  ipAddress: string | null;
  userAgent: string | null;
  userId: string;
}

/** The sign-in library's: how a user signs in. `password` is a hash, of the provider `credential`. */
export interface AccountTable {
  id: string;
  accountId: string;
  providerId: string;
  userId: string;
  password: string | null;
  createdAt: GeneratedInstant;
  updatedAt: Date;
}

/** The sign-in library's: short-lived values of its own, by name. */
export interface VerificationTable {
  id: string;
  identifier: string;
  value: string;
  expiresAt: Date;
  createdAt: GeneratedInstant;
  updatedAt: GeneratedInstant;
}

/** The sign-in library's: a device that asks to be let in. Its `deviceCode` alone opens nothing: devices hold it with a signature. */
export interface DeviceCodeTable {
  id: string;
  deviceCode: string;
  userCode: string;
  userId: string | null;
  expiresAt: Date;
  status: string;
  lastPolledAt: Date | null;
  /** In milliseconds. */
  pollingInterval: number | null;
  clientId: string | null;
  scope: string | null;
}

export interface SessionTokenTable {
  id: string;
  login_id: string;
  user_id: string;
  token_sha256: Buffer;
  created_at: GeneratedInstant;
  expires_at: Instant;
}

export interface AgentTokenTable {
  id: string;
  user_id: string;
  name: string;
  token_sha256: Buffer;
  token_prefix: string;
  access: 'read_only' | 'read_send';
  can_approve: boolean;
  can_wake: boolean;
  created_at: GeneratedInstant;
  expires_at: Instant;
  revoked_at: Instant | null;
  last_used_at: Instant | null;
}

export interface InvitationTable {
  id: string;
  org_id: string;
  email: string;
  role: string;
  invited_by: string | null;
  /** null until the mail was sent. */
  token_sha256: Buffer | null;
  created_at: GeneratedInstant;
  expires_at: Instant;
  sent_at: Instant | null;
  accepted_at: Instant | null;
  accepted_by: string | null;
  revoked_at: Instant | null;
}

export interface OneTimeLinkTable {
  id: string;
  purpose: 'welcome' | 'reset_password' | 'verify_email';
  user_id: string;
  token_sha256: Buffer;
  created_at: GeneratedInstant;
  expires_at: Instant;
  used_at: Instant | null;
}

export interface ThrottleTable {
  key_sha256: Buffer;
  tokens: number;
  refilled_at: Instant;
}

export interface OrgTable {
  id: string;
  name: string;
  created_at: GeneratedInstant;
}

export interface MembershipTable {
  org_id: string;
  user_id: string;
  role: string;
  created_at: GeneratedInstant;
}

export interface ApiKeyTable {
  id: string;
  org_id: string;
  created_by: string | null;
  name: string;
  token_sha256: Buffer;
  token_prefix: string;
  /** null: unscoped. Empty: grants nothing. */
  scopes: string[] | null;
  created_at: GeneratedInstant;
  expires_at: Instant | null;
  revoked_at: Instant | null;
  last_used_at: Instant | null;
}

export interface HostTable {
  id: string;
  url: string;
  start_id: string;
  driver: string;
  accelerator: string;
  capacity_vcpu: number;
  capacity_memory_mib: number;
  capacity_disk_gib: number;
  reserved_vcpu: number;
  reserved_memory_mib: number;
  reserved_disk_gib: number;
  largest_vcpu: number | null;
  largest_memory_mib: number | null;
  largest_disk_gib: number | null;
  last_seen_at: Instant;
  created_at: GeneratedInstant;
}

export interface ProjectTable {
  id: string;
  org_id: string;
  name: string;
  use_case: string;
  default_repository: string | null;
  default_branch: string | null;
  default_profile: string | null;
  default_persistence_policy: string | null;
  default_idle_minutes: number | null;
  sandbox_machine_hour_limit: number | null;
  wake_on_use: Generated<boolean>;
  metadata: ColumnType<Record<string, string | number | boolean>, string | undefined, string>;
  /** Sealed with the key of the configuration (services/sealed.ts). */
  repo_credentials_sealed: Buffer | null;
  created_by: string | null;
  created_at: GeneratedInstant;
  updated_at: GeneratedInstant;
  deleted_at: Instant | null;
}

export interface SandboxTable {
  id: string;
  org_id: string;
  project_id: string;
  host_id: string | null;
  created_by: string | null;
  name: string;
  agent: string;
  status: SandboxStatus;
  status_reason_code: string | null;
  status_reason_message: string | null;
  status_changed_at: GeneratedInstant;
  epoch: number;
  profile: string;
  persistence_policy: string;
  mode: string;
  ttl_seconds: number | null;
  expires_at: Instant | null;
  repository: string | null;
  branch: string | null;
  /** `pending` until the clone has come to its end; null without a repository. */
  clone_status: 'pending' | 'cloned' | 'failed' | null;
  /** The epoch that the clone's durable step was begun for. */
  clone_epoch: number | null;
  clone_reason_code: string | null;
  clone_reason_message: string | null;
  ssh_public_key: string | null;
  end_user_id: string | null;
  metadata: Json<Record<string, string | number | boolean>>;
  allocated_vcpu: number;
  allocated_memory_gb: number;
  allocated_disk_gb: number;
  pending_vcpu: number | null;
  pending_memory_gb: number | null;
  pending_disk_gb: number | null;
  /** The pending allocation was stored by a metrics sample, not asked for. */
  pending_recommended: Generated<boolean>;
  /** What is left on its host for a wake; null for nothing, or while it is awake. */
  wakes_from: 'snapshot' | 'disk' | null;
  last_wake_at: Instant | null;
  last_wake_from: 'snapshot' | 'disk' | null;
  last_wake_reason: string | null;
  last_active_at: GeneratedInstant;
  /** The step under way is to reach the pending allocation, which is reserved until it ends. */
  resizing: Generated<boolean>;
  created_at: GeneratedInstant;
  updated_at: GeneratedInstant;
  deleted_at: Instant | null;
}

export interface SubscriptionTable {
  org_id: string;
  /** Its name in the plan catalogue. */
  plan: string;
  /** `past_due`: the payment provider still tries to collect, and the plan stays in force. `canceled`: it is over. */
  status: SubscriptionStatus;
  /** Of one that is paid for: when the provider made it. */
  started_at: GeneratedInstant;
  /** Periods begin on this instant's day of the month and time of day, in UTC (rules/billing-period.ts); may be ahead, as of a trial. */
  period_anchor: GeneratedInstant;
  /** Guardrail of the org's admins: the cap of a period in machine hours; null: none of their own. */
  machine_hour_limit: number | null;
  overage_enabled: Generated<boolean>;
  canceled_at: Instant | null;
  /** When it will be over, if that is known ahead. */
  cancels_at: Instant | null;
  /** The payment provider's customer, who stays when a subscription ends. */
  provider_customer_id: string | null;
  /** The payment provider's subscription that the row follows; null: the plan is the operator's gift. */
  provider_subscription_id: string | null;
  /** The checkout that was begun last. */
  provider_checkout_id: string | null;
  /** Goes up with everything taken over from the provider: what was asked of it before is then out of date. */
  provider_revision: Generated<number>;
}

/** Events of the payment provider that were dealt with. */
export interface PaymentEventTable {
  id: string;
  kind: string;
  received_at: GeneratedInstant;
}

export interface IdempotencyKeyTable {
  org_id: string;
  key: string;
  body_sha256: Buffer;
  sandbox_id: string;
  created_at: GeneratedInstant;
}

/** Shares of the allocation in force, 0 to 1. */
export interface MetricsSampleTable {
  id: string;
  sandbox_id: string;
  at: GeneratedInstant;
  uptime_seconds: number;
  cpu_busy_ms: number;
  vcpu: number;
  memory_gb: number;
  disk_gb: number;
  cpu_used: number | null;
  memory_used: number;
  disk_used: number;
}

export interface ActivityTable {
  id: string;
  org_id: string;
  project_id: string | null;
  sandbox_id: string | null;
  actor_kind: string;
  actor_id: string | null;
  actor_user_id: string | null;
  kind: string;
  details: Json<Record<string, unknown>>;
  at: GeneratedInstant;
  /** Orders rows whose `at` is the same. A bigint: text. */
  seq: Generated<string>;
  request_id: string | null;
  subject_kind: string;
  subject_id: string;
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

export interface PreviewLinkTable {
  id: string;
  sandbox_id: string;
  org_id: string;
  project_id: string;
  port: number;
  label: string | null;
  end_user_id: string | null;
  created_by: string | null;
  created_at: GeneratedInstant;
  expires_at: Instant;
  revoked_at: Instant | null;
  last_used_at: Instant | null;
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

/** A stretch of time whose closed intervals are summed; `first_at` and `last_at` enclose what is in the sums. */
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

export interface Tables {
  user: UserTable;
  session: LoginTable;
  account: AccountTable;
  verification: VerificationTable;
  deviceCode: DeviceCodeTable;
  session_token: SessionTokenTable;
  agent_token: AgentTokenTable;
  invitation: InvitationTable;
  one_time_link: OneTimeLinkTable;
  throttle: ThrottleTable;
  org: OrgTable;
  membership: MembershipTable;
  api_key: ApiKeyTable;
  host: HostTable;
  project: ProjectTable;
  sandbox: SandboxTable;
  activity: ActivityTable;
  usage_interval: UsageIntervalTable;
  usage_unrolled: UsageUnrolledTable;
  usage_cut: UsageCutTable;
  usage_span: UsageSpanTable;
  usage_total: UsageTotalTable;
  subscription: SubscriptionTable;
  payment_event: PaymentEventTable;
  usage_cap_warning: UsageCapWarningTable;
  usage_cap_reached: UsageCapReachedTable;
  idempotency_key: IdempotencyKeyTable;
  metrics_sample: MetricsSampleTable;
  preview_link: PreviewLinkTable;
}

export type Database = Kysely<Tables>;
export type DatabaseTransaction = Transaction<Tables>;

export type UserRow = Selectable<UserTable>;
export type OrgRow = Selectable<OrgTable>;
export type ApiKeyRow = Selectable<ApiKeyTable>;
export type AgentTokenRow = Selectable<AgentTokenTable>;
export type InvitationRow = Selectable<InvitationTable>;
export type ActivityRow = Selectable<ActivityTable>;
export type ProjectRow = Selectable<ProjectTable>;
export type SandboxRow = Selectable<SandboxTable>;
export type NewSandbox = Insertable<SandboxTable>;
export type IdempotencyKeyRow = Selectable<IdempotencyKeyTable>;
export type SubscriptionRow = Selectable<SubscriptionTable>;
export type MetricsSampleRow = Selectable<MetricsSampleTable>;
export type PreviewLinkRow = Selectable<PreviewLinkTable>;
export type NewProject = Insertable<ProjectTable>;
