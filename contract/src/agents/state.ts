// State tables of agent sessions: bridge, turn, and the operations available in each state. Server,
// SDK and CLI read these tables.
//
// Bridge:
//   starting ──ready within 60 s──> ready ──crash, end of the agent, idle, boot of the disk──> stopped
//       └── not in time, refused ──> stopped ──recover──> starting
//   any state ──sandbox deleted──> gone
//   `suspended` is shown for the `ready` bridge of a sandbox that is not awake.
//
// Turn:
//   sending ──taken──> running <──> waiting ──> completed | failed | canceled
//      │                  └────────────┴──interrupt──> interrupting ──> canceled (or the end that came first)
//      └── not delivered, or its fate unknown ──> failed
import { z } from 'zod';
import type { SandboxStatus } from '../sandboxes/state.ts';
import { SANDBOX_STATES } from '../sandboxes/state.ts';

const MORE = 'More may be added; clients must accept unknown values.';

export const bridgeState = z.enum(['starting', 'ready', 'suspended', 'stopped', 'gone']).meta({
  id: 'AgentBridgeState',
  description:
    'State of the program that runs the agent. `suspended`: asleep with its sandbox. `stopped`: recover the ' +
    `session. \`gone\`: its sandbox was destroyed. ${MORE}`,
});
type BridgeState = z.infer<typeof bridgeState>;
/** Stored states; `suspended` is derived. */
export type StoredBridgeState = Exclude<BridgeState, 'suspended'>;

export const turnState = z
  .enum(['sending', 'running', 'waiting', 'interrupting', 'completed', 'failed', 'canceled'])
  .meta({
    id: 'AgentTurnState',
    description:
      'State of a turn. `sending`: its delivery is unknown so far. `waiting`: for an answer to an approval. ' +
      `Final: \`completed\`, \`failed\`, \`canceled\`. ${MORE}`,
  });
export type TurnState = z.infer<typeof turnState>;

interface TurnStateRule {
  meaning: string;
  /** Occupies the session: another message is rejected. */
  active: boolean;
  /** Legal successors. */
  next: readonly TurnState[];
}

const ENDS = ['completed', 'failed', 'canceled'] as const;

export const TURN_STATES: { readonly [state in TurnState]: TurnStateRule } = {
  sending: {
    meaning: 'its message is being delivered, or its delivery is unknown',
    active: true,
    next: ['running', 'waiting', 'interrupting', ...ENDS],
  },
  running: { meaning: 'the agent works on it', active: true, next: ['waiting', 'interrupting', ...ENDS] },
  waiting: {
    meaning: 'the agent waits for an answer to an approval',
    active: true,
    next: ['running', 'interrupting', ...ENDS],
  },
  interrupting: { meaning: 'its interrupt was requested', active: true, next: [...ENDS] },
  completed: { meaning: 'the agent finished it', active: false, next: [] },
  failed: { meaning: 'it failed; see the reason for whether it may have had effects', active: false, next: [] },
  canceled: { meaning: 'it was interrupted or canceled', active: false, next: [] },
};

/** Reasons of a failed turn. Only `not_delivered` is certain to have had no effect. */
export const turnReason = z.enum(['agent_error', 'agent_ended', 'bridge_ended', 'machine_lost', 'not_delivered']).meta({
  id: 'AgentTurnReason',
  description:
    'Reason of a failed turn. `not_delivered`: the agent never got the message, and never will. `agent_error`: ' +
    'the agent reported an error, or replaced its approvals faster than anyone can answer. `agent_ended`, ' +
    `\`bridge_ended\`, \`machine_lost\`: a process or the VM ended; the turn may have had effects. ${MORE}`,
});
export type TurnReason = z.infer<typeof turnReason>;

export const bridgeReason = z
  .enum([
    'not_ready',
    'agent_ended',
    'bridge_ended',
    'idle',
    'memory',
    'machine_lost',
    'not_signed_in',
    'conversation_missing',
  ])
  .meta({
    id: 'AgentBridgeReason',
    description:
      'Reason of a stopped bridge. `not_ready`: the agent was not ready in time. `idle`, `memory`: stopped to free ' +
      `memory; recover restores it without loss. ${MORE}`,
  });
export type BridgeReason = z.infer<typeof bridgeReason>;

/** `managed`: a separate conversation. `terminal`: the agent's program in a shared terminal. */
export const agentSurface = z.enum(['managed', 'terminal']).meta({
  id: 'AgentSurface',
  description: `\`managed\`: a separate conversation. \`terminal\`: the agent's program in a shared terminal. ${MORE}`,
});
export type AgentSurface = z.infer<typeof agentSurface>;

/** Operations on a session (spec: `communication.capabilities`). */
export const agentOperation = z.enum(['messages', 'output', 'approvals', 'interruption', 'recovery']).meta({
  id: 'AgentOperation',
  description: `An operation on an agent session. ${MORE}`,
});
export type AgentOperation = z.infer<typeof agentOperation>;

export const communicationStatus = z
  .enum(['available', 'busy', 'needs_input', 'starting', 'asleep', 'stopped', 'unsupported', 'gone'])
  .meta({
    id: 'AgentCommunicationStatus',
    description:
      '`available`: send a message. `busy`: a turn is active. `needs_input`: answer the approval. `starting`: not ' +
      'ready for messages. `asleep`: the sandbox is not awake. `stopped`: recover the session, or open its terminal. ' +
      `\`unsupported\`: the session has no operations; open its terminal. ${MORE}`,
  });
type CommunicationStatus = z.infer<typeof communicationStatus>;

/**
 * Part that a bridge takes in the conversation of a terminal's program: `pending` until the program
 * shows one; null: none.
 */
export type AgentConversation = 'pending' | 'open' | null;

/** Ways in which a session takes operations. */
type SessionKind = 'managed' | 'terminal' | 'terminalPending' | 'terminalOpen';

/** Operations of an awake sandbox's session, by its kind and the state of its bridge. */
export const AGENT_OPERATIONS: {
  readonly [kind in SessionKind]: { readonly [state in BridgeState]: readonly AgentOperation[] };
} = {
  managed: {
    starting: ['output'],
    ready: ['messages', 'output', 'approvals', 'interruption', 'recovery'],
    suspended: [],
    stopped: ['output', 'recovery'],
    gone: [],
  },
  // People talk to the agent in its own program.
  terminal: { starting: [], ready: [], suspended: [], stopped: [], gone: [] },
  terminalPending: {
    starting: ['output'],
    ready: ['output', 'recovery'],
    suspended: [],
    stopped: ['output', 'recovery'],
    gone: [],
  },
  terminalOpen: {
    starting: ['output'],
    ready: ['messages', 'output', 'approvals', 'interruption', 'recovery'],
    suspended: [],
    stopped: ['output', 'recovery'],
    gone: [],
  },
};

interface Talk {
  surface: AgentSurface;
  conversation: AgentConversation;
}

function kindOf({ surface, conversation }: Talk): SessionKind {
  if (surface === 'managed') return 'managed';
  if (conversation === null) return 'terminal';
  return conversation === 'open' ? 'terminalOpen' : 'terminalPending';
}

/** Whether the session has the operation in some state. */
export function hasOperation({ surface, conversation }: Talk, operation: AgentOperation): boolean {
  const kind = kindOf({ surface, conversation: conversation && 'open' });
  return Object.values(AGENT_OPERATIONS[kind]).some((operations) => operations.includes(operation));
}

interface SessionFacts extends Talk {
  bridge: StoredBridgeState;
  sandboxStatus: SandboxStatus;
  turn: TurnState | null;
}

/** The state of the bridge as shown. */
export function shownBridgeState({
  bridge,
  sandboxStatus,
}: Pick<SessionFacts, 'bridge' | 'sandboxStatus'>): BridgeState {
  return bridge === 'ready' && !SANDBOX_STATES[sandboxStatus].awake ? 'suspended' : bridge;
}

/** The operations available now; empty unless the sandbox is awake. */
export function capabilitiesOf(facts: SessionFacts): AgentOperation[] {
  if (!SANDBOX_STATES[facts.sandboxStatus].awake) return [];
  return [...AGENT_OPERATIONS[kindOf(facts)][shownBridgeState(facts)]];
}

export function communicationStatusOf(facts: SessionFacts): CommunicationStatus {
  const state = shownBridgeState(facts);
  if (state === 'gone') return 'gone';
  if (!SANDBOX_STATES[facts.sandboxStatus].awake) return 'asleep';
  if (!hasOperation(facts, 'messages')) return 'unsupported';
  if (state !== 'ready') return state === 'starting' ? 'starting' : 'stopped';
  if (kindOf(facts) === 'terminalPending') return 'starting';
  if (facts.turn === 'waiting') return 'needs_input';
  return facts.turn !== null && TURN_STATES[facts.turn].active ? 'busy' : 'available';
}
