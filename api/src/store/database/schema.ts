// The tables and their rows as Kysely types. Mirrors ../../migrations; tables-*.ts define the
// columns by subject. Holds no queries.
import type { Insertable, Kysely, Selectable, Transaction } from 'kysely';
import type {
  AccountTable,
  AgentTokenTable,
  ApiKeyTable,
  DeviceCodeTable,
  InvitationTable,
  LoginTable,
  MembershipTable,
  OneTimeLinkTable,
  OrgDomainTable,
  OrgTable,
  RecoveryCodeTable,
  SessionTokenTable,
  TotpTable,
  PasskeyTable,
  SpentChallengeTable,
  SpentGrantTable,
  ThrottleTable,
  UserTable,
  VerificationTable,
} from './tables-people.ts';
import type {
  ActivityTable,
  DurableStepTable,
  HostTable,
  IdempotencyKeyTable,
  MetricsSampleTable,
  PreviewLinkTable,
  ProjectTable,
  SandboxDataKeyTable,
  SandboxCloneOutputTable,
  SandboxVariableTable,
  AgentCredentialTable,
  SandboxTable,
  SecretKeyUseTable,
  SecretReplicaTable,
} from './tables-sandboxes.ts';
import type { AgentSessionTable, AgentTurnTable } from './tables-agents.ts';
import type {
  PaymentEventTable,
  SubscriptionTable,
  UsageCapReachedTable,
  UsageCapWarningTable,
  UsageCutTable,
  UsageIntervalTable,
  UsageSpanTable,
  UsageTotalTable,
  UsageUnrolledTable,
} from './tables-usage.ts';

export interface Tables {
  user: UserTable;
  session: LoginTable;
  account: AccountTable;
  verification: VerificationTable;
  deviceCode: DeviceCodeTable;
  session_token: SessionTokenTable;
  totp: TotpTable;
  passkey: PasskeyTable;
  spent_challenge: SpentChallengeTable;
  spent_grant: SpentGrantTable;
  recovery_code: RecoveryCodeTable;
  agent_token: AgentTokenTable;
  invitation: InvitationTable;
  one_time_link: OneTimeLinkTable;
  throttle: ThrottleTable;
  org: OrgTable;
  org_domain: OrgDomainTable;
  membership: MembershipTable;
  api_key: ApiKeyTable;
  host: HostTable;
  project: ProjectTable;
  sandbox: SandboxTable;
  sandbox_data_key: SandboxDataKeyTable;
  sandbox_variable: SandboxVariableTable;
  sandbox_clone_output: SandboxCloneOutputTable;
  agent_credential: AgentCredentialTable;
  agent_session: AgentSessionTable;
  agent_turn: AgentTurnTable;
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
  secret_replica: SecretReplicaTable;
  secret_key_use: SecretKeyUseTable;
  durable_step: DurableStepTable;
}

export type Database = Kysely<Tables>;
export type DatabaseTransaction = Transaction<Tables>;

export type UserRow = Selectable<UserTable>;
export type OrgRow = Selectable<OrgTable>;
export type OrgDomainRow = Selectable<OrgDomainTable>;
export type ApiKeyRow = Selectable<ApiKeyTable>;
export type AgentTokenRow = Selectable<AgentTokenTable>;
export type InvitationRow = Selectable<InvitationTable>;
export type ActivityRow = Selectable<ActivityTable>;
export type AgentCredentialRow = Selectable<AgentCredentialTable>;
export type AgentSessionRow = Selectable<AgentSessionTable>;
export type AgentTurnRow = Selectable<AgentTurnTable>;
export type ProjectRow = Selectable<ProjectTable>;
export type SandboxRow = Selectable<SandboxTable>;
export type NewSandbox = Insertable<SandboxTable>;
export type IdempotencyKeyRow = Selectable<IdempotencyKeyTable>;
export type SubscriptionRow = Selectable<SubscriptionTable>;
export type MetricsSampleRow = Selectable<MetricsSampleTable>;
export type PreviewLinkRow = Selectable<PreviewLinkTable>;
export type NewProject = Insertable<ProjectTable>;
