// Kysely types of the tables of agent sessions (schema.ts). Columns are named as in the database.
import type {
  AgentConversation,
  BridgeReason,
  StoredBridgeState,
  TurnReason,
  TurnState,
} from '@berth/contract/agents/state.ts';
import type { Agent } from '@berth/contract/sandboxes/fields.ts';
import type { ColumnType, Generated } from 'kysely';
import type { GeneratedInstant, Instant } from './column-types.ts';

/** A bigint: read as text. */
type Counter = ColumnType<string, number | undefined, number>;

export interface AgentSessionTable {
  id: string;
  org_id: string;
  project_id: string;
  sandbox_id: string;
  end_user_id: string | null;
  agent: Agent;
  surface: 'managed' | 'terminal';
  /** Part of the bridge in the conversation of a terminal's program; null: none, or no terminal. */
  conversation: ColumnType<AgentConversation, AgentConversation | undefined, AgentConversation>;
  bridge_state: StoredBridgeState;
  bridge_version: number | null;
  bridge_reason: BridgeReason | null;
  /** The active turn, or the last one. */
  turn_id: string | null;
  /** Pending approval; its id, kind and time only. */
  prompt_id: ColumnType<string | null, number | null | undefined, number | null>;
  prompt_kind: string | null;
  prompt_turn_id: string | null;
  prompt_asked_at: Instant | null;
  /** Last entry about an approval; null: the next one is due. */
  prompt_noted_at: Instant | null;
  /** Approvals since that entry. */
  prompts_unnoted: Generated<number>;
  /** Last entry about a stop; null: the next one is due. */
  stop_noted_at: Instant | null;
  last_seq: Counter;
  signs: Counter;
  /** Position of the last view of the guest: epoch of the sandbox, run of the guest, revision. */
  view_epoch: Generated<number>;
  view_run_id: string | null;
  view_revision: Counter;
  /** Grows with each change of this row or its turns. */
  revision: Counter;
  state_at: GeneratedInstant;
  /** User of the credential that created it. */
  created_by: string | null;
  /** null: created before these columns. */
  creator_kind: string | null;
  creator_id: string | null;
  created_at: GeneratedInstant;
  updated_at: GeneratedInstant;
  /** Its agent may act without approval. */
  unattended: Generated<boolean>;
  /** The sandbox was deleted. */
  gone_at: Instant | null;
}

export interface AgentTurnTable {
  id: string;
  session_id: string;
  sandbox_id: string;
  /** `terminal`: a person at the agent's terminal, who has no credential. */
  caller_kind: string;
  /** The credential; of an access token, its sign-in. */
  caller_id: string;
  caller_user_id: string;
  request_key: string | null;
  /** Keyed hash of the message. */
  text_hmac: Buffer;
  state: TurnState;
  reason: TurnReason | null;
  /** Run of the guest to which the message was sent. */
  run_id: string | null;
  /** Last dispatch; null: surely not delivered, as older versions kept it. */
  dispatched_at: ColumnType<Date | null, Date | null | undefined, Date | null>;
  created_at: GeneratedInstant;
  started_at: Instant | null;
  ended_at: Instant | null;
}
