// Kysely types of the tables of hosts, projects, sandboxes and their events (schema.ts). Columns
// are named as in the database.
import type { ActivityActorKind, ActivitySubjectKind } from '@berth/contract/activity/feed.ts';
import type { ActivityKind } from '@berth/contract/route/activity-kinds.ts';
import type { EgressBody } from '@berth/contract/sandboxes/egress-policy.ts';
import type { Agent, PersistencePolicy } from '@berth/contract/sandboxes/fields.ts';
import type { Profile } from '@berth/contract/sandboxes/machine-sizes.ts';
import type { UseSignal } from '@berth/contract/sandboxes/sandboxes.ts';
import type { SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import type { ColumnType, Generated } from 'kysely';
import type { KeyFields } from '../../rules/sandboxes/key-fields.ts';
import type { GeneratedInstant, Instant, Json, WrittenAs } from './column-types.ts';

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
  /** VMs of the warm pool, and their target number; null until reported. */
  pool_ready: number | null;
  pool_target: number | null;
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
  default_profile: Profile | null;
  default_persistence_policy: PersistencePolicy | null;
  default_idle_minutes: number | null;
  default_egress: ColumnType<EgressBody | null, string | null | undefined, string | null>;
  sandbox_machine_hour_limit: number | null;
  wake_on_use: Generated<boolean>;
  agent_approvals: Generated<'ask' | 'never'>;
  metadata: ColumnType<Record<string, string | number | boolean>, string | undefined, string>;
  /** Sealed with the configured key (services/context/sealed.ts). */
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
  agent: Agent;
  status: SandboxStatus;
  status_reason_code: string | null;
  status_reason_message: string | null;
  status_changed_at: GeneratedInstant;
  epoch: number;
  profile: Profile;
  persistence_policy: PersistencePolicy;
  mode: string;
  ttl_seconds: number | null;
  expires_at: Instant | null;
  repository: string | null;
  branch: string | null;
  /** `pending` until the clone finishes; null without a repository. */
  clone_status: 'pending' | 'cloned' | 'failed' | null;
  /** Epoch of the clone's durable step. */
  clone_epoch: number | null;
  clone_reason_code: string | null;
  clone_reason_message: string | null;
  ssh_public_key: string | null;
  end_user_id: string | null;
  /** Key of `getOrCreate`; of one live sandbox of a project. */
  key: string | null;
  /** Fields of the create with the key (rules/sandboxes/key-fields.ts); null without a key. */
  key_fields: ColumnType<KeyFields | null, string | undefined, string | null>;
  metadata: Json<Record<string, string | number | boolean>>;
  egress: ColumnType<EgressBody, string | undefined, string>;
  /** Raised by each change of `egress`; 0: open since the create. */
  egress_revision: Generated<number>;
  /** Attempts refused by the host as last noted in the activity feed; null before the first. */
  egress_denied: ColumnType<{ sinceUnixMs: number; count: number } | null, string | undefined, string>;
  egress_denied_at: Instant | null;
  /** null: the project's `default_idle_minutes`. */
  idle_minutes: number | null;
  /** Whether a process that keeps it awake was started; it may have ended. */
  has_awake_process: Generated<boolean>;
  allocated_vcpu: number;
  allocated_memory_gb: number;
  allocated_disk_gb: number;
  pending_vcpu: number | null;
  pending_memory_gb: number | null;
  pending_disk_gb: number | null;
  /** The pending allocation comes from a metrics sample, not from a request. */
  pending_recommended: Generated<boolean>;
  /** State on the host that a wake starts from; null for none, or while awake. */
  wakes_from: 'snapshot' | 'disk' | null;
  last_wake_at: Instant | null;
  last_wake_from: 'snapshot' | 'disk' | null;
  last_wake_reason: string | null;
  last_active_at: GeneratedInstant;
  /** null: the VM started, or a use before it was recorded. */
  last_active_by: UseSignal | null;
  /** A step is resizing to the pending allocation, which is reserved until the step ends. */
  resizing: Generated<boolean>;
  /**
   * Reservation on the host while being destroyed; null otherwise. null while destroying means
   * unknown and counts as a VM.
   */
  destroy_holds: 'machine' | 'disk' | 'nothing' | null;
  created_at: GeneratedInstant;
  updated_at: GeneratedInstant;
  deleted_at: Instant | null;
}

export interface IdempotencyKeyTable {
  org_id: string;
  key: string;
  body_sha256: Buffer;
  sandbox_id: string;
  created_at: GeneratedInstant;
}

/** Fractions of the allocation in force, 0 to 1. */
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
  actor_kind: WrittenAs<ActivityActorKind>;
  actor_id: string | null;
  actor_user_id: string | null;
  kind: WrittenAs<ActivityKind>;
  details: Json<Record<string, unknown>>;
  at: GeneratedInstant;
  /** Orders rows with the same `at`. A bigint: text. */
  seq: Generated<string>;
  /** Transaction of the row, as text; null for rows older than the column. */
  xid: Generated<string | null>;
  request_id: string | null;
  subject_kind: WrittenAs<ActivitySubjectKind>;
  subject_id: string;
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
  /** null for a link made by a signed-in person. */
  api_key_id: string | null;
  /** Pages of other origins may frame the app. */
  embeddable: Generated<boolean>;
  created_at: GeneratedInstant;
  expires_at: Instant;
  revoked_at: Instant | null;
  last_used_at: Instant | null;
}

export interface DurableStepTable {
  id: string;
  kind: string;
  org_id: string;
  input: Json<unknown>;
  enqueued_at: GeneratedInstant;
  /** Id of the executor that runs the step. */
  claimed_by: string | null;
}

/** A project's key for an agent. */
export interface AgentCredentialTable {
  /** Project and agent. */
  id: string;
  project_id: string;
  agent: string;
  endpoint: string;
  /** Sealed with the configured key (services/context/sealed.ts). */
  key_sealed: Buffer;
  /** Another one for each stored key. */
  revision: Generated<number>;
  updated_at: GeneratedInstant;
}

/** Missing for a sandbox of an earlier release until its next sleep or wake. */
export interface SandboxDataKeyTable {
  sandbox_id: string;
  /** Sealed with the configured key (services/context/sealed.ts). */
  key_sealed: Buffer;
}

/** Sanitised; deleted with the sandbox. */
export interface SandboxCloneOutputTable {
  sandbox_id: string;
  output: string;
  truncated: boolean;
}

export interface SandboxVariableTable {
  /** The org, the sandbox and the name, to which the value is sealed. */
  id: string;
  sandbox_id: string;
  name: string;
  value_sealed: Buffer;
  /** Length of name and value. */
  bytes: number;
  updated_at: GeneratedInstant;
}

/** Secrets that a replica has loaded, by id, the current one first. */
export interface SecretReplicaTable {
  replica_id: string;
  secret_key_ids: string[];
  host_token_ids: string[];
  reported_at: GeneratedInstant;
}

/** When a secret key last was a replica's current one. */
export interface SecretKeyUseTable {
  key_id: string;
  current_at: GeneratedInstant;
}
