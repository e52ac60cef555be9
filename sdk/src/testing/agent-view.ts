// Records of the agent sessions of the test server, from the contract's tables.
import { AGENT_LABELS } from '../generated/contract-tables.ts';
import { AGENT_OPERATIONS, TURN_STATES } from '../generated/service-tables.ts';
import { SANDBOX_STATES } from '../generated/contract-tables.ts';
import { AGENT_PROMPT_CHARACTERS } from '../generated/limits.ts';
import type {
  AgentBridgeReason,
  AgentPendingInput,
  AgentSession,
  AgentTurn,
  AgentTurnState,
  Sandbox,
  SandboxStatus,
} from '../generated/raw/index.ts';

export interface TestPrompt extends AgentPendingInput {
  requestId: number;
  title: string;
  detail: string;
}

interface SessionFacts {
  id: string;
  sandbox: Sandbox;
  bridge: { state: 'ready' | 'stopped'; reason: AgentBridgeReason | null };
  /** Oldest first. */
  turns: readonly (AgentTurn & { state: AgentTurnState })[];
  prompt: TestPrompt | null;
  revision: string;
  createdAt: string;
  updatedAt: string;
}

const RECENT_TURNS = 10;

/** The record; without texts of the approval, as in a list, unless a detail is given. */
export function viewSession(facts: SessionFacts, detail?: 'short' | 'full'): AgentSession {
  const { id, sandbox, bridge, turns, prompt, revision, createdAt, updatedAt } = facts;
  const { orgId, projectId, endUserId, agent, status: sandboxStatus } = sandbox;
  const turn = turns.at(-1);
  return {
    ...{ id, orgId, projectId, sandboxId: sandbox.id, endUserId, agent, sandboxStatus },
    agentLabel: (AGENT_LABELS as Readonly<Record<string, string>>)[agent] ?? agent,
    surface: 'managed',
    bridgeState: shownBridge(facts),
    bridgeVersion: 7,
    bridgeReason: bridge.reason,
    turnId: turn?.turnId ?? null,
    turnState: turn?.state ?? null,
    turnReason: turn?.reason ?? null,
    turnStartedAt: turn?.startedAt ?? null,
    turnEndedAt: turn?.endedAt ?? null,
    needsYou: prompt !== null,
    waitingOn: prompt === null ? null : 'approval',
    pendingInput: prompt === null ? null : shownPrompt(prompt, isAwake(sandbox) ? detail : undefined),
    communication: {
      status: communicationStatus(facts),
      capabilities: isAwake(sandbox) ? [...AGENT_OPERATIONS.managed[shownBridge(facts)]] : [],
    },
    revision,
    stateAt: updatedAt,
    createdAt,
    updatedAt,
    ...(detail === undefined ? {} : { recentTurns: turns.slice(-RECENT_TURNS).toReversed().map(shownTurn) }),
  };
}

function isAwake({ status }: Sandbox): boolean {
  return SANDBOX_STATES[status as SandboxStatus].awake;
}

function shownBridge({ sandbox, bridge }: SessionFacts): 'ready' | 'stopped' | 'suspended' | 'gone' {
  if (sandbox.status === 'deleted') return 'gone';
  return bridge.state === 'ready' && !isAwake(sandbox) ? 'suspended' : bridge.state;
}

function communicationStatus(facts: SessionFacts): AgentSession['communication']['status'] {
  const state = shownBridge(facts);
  if (state === 'gone') return 'gone';
  if (!isAwake(facts.sandbox)) return 'asleep';
  if (state === 'stopped') return 'stopped';
  if (facts.prompt !== null) return 'needs_input';
  const turn = facts.turns.at(-1);
  return turn !== undefined && TURN_STATES[turn.state].active ? 'busy' : 'available';
}

function shownTurn({ turnId, state, reason, startedAt, endedAt }: AgentTurn): AgentTurn {
  return { turnId, state, reason, startedAt, endedAt };
}

function shownPrompt(prompt: TestPrompt, shown: 'short' | 'full' | undefined): AgentPendingInput {
  const { requestId, turnId, kind, askedAt, decisions, title, detail, truncated, workingDirectory } = prompt;
  const known = { requestId, turnId, kind, askedAt, decisions };
  if (shown === undefined) return { ...known, title: null, detail: null, truncated: false, workingDirectory: null };
  if (shown === 'full') return { ...known, title, detail, truncated, workingDirectory };
  const limit = AGENT_PROMPT_CHARACTERS.short;
  return {
    ...known,
    title,
    detail: detail.slice(0, limit),
    truncated: detail.length > limit,
    workingDirectory: null,
  };
}
