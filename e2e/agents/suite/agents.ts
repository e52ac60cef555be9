// The agents of the suite: messages that make each do the same, and counts of their executions.
import type { RealAgent } from '../../../guest/test/bridge/real-agents.ts';
import type { Conversation } from '../conversation.ts';
import type { AgentWorld } from './world.ts';

/** Instructions of a message, in words that each agent has. */
interface Words {
  say: (text: string) => string;
  /** Says for a long time. */
  stream: string;
  /** Runs the command once a person accepts. */
  tool: (command: string) => string;
  /** Neither ends nor says anything. */
  hang: string;
  /** Says that many characters. */
  large: (characters: number) => string;
  /** Says what the conversation had so far. */
  history: string;
}

export interface SuiteAgent {
  name: string;
  /** Agent of the sandbox. */
  id: 'agent_one' | 'agent_two';
  label: string;
  /** Null: the scripted agent. */
  real: RealAgent | null;
  words: Words;
  /** Reply to `history` in a conversation of that many turns, this one included. */
  recalls(turns: number, replies: readonly string[]): RegExp;
  /** Executions of a turn whose text has the mark: each call of a tool adds a call of the model. */
  executions(turnId: string, mark: string, at: { world: AgentWorld; talk: Conversation }): Promise<number>;
  /** Executions of a turn that called so many tools. */
  expected(tools: number): number;
}

const REAL_WORDS: Words = {
  say: (text) => `@say ${text}`,
  stream: '@slow 100000',
  tool: (command) => `@run ${command}`,
  hang: '@hang',
  large: (characters) => `@big ${characters}`,
  history: '@history',
};

const real = (name: string, id: SuiteAgent['id'], agent: RealAgent): SuiteAgent => ({
  ...{ name, id, label: name, real: agent, words: REAL_WORDS },
  recalls: (_, replies) => new RegExp(replies.join('.*')),
  executions: async (_, mark, { world }) => world.models.callsFor(mark),
  expected: (tools) => 1 + tools,
});

const scripted: SuiteAgent = {
  ...{ name: 'the scripted agent', id: 'agent_one', label: 'Codex', real: null },
  words: {
    say: (text) => `say ${text}`,
    stream: 'stream 100000 20',
    tool: (command) => `ask-run ${command}`,
    hang: 'hang',
    large: (characters) => `large ${characters}`,
    history: 'history',
  },
  recalls: (turns) => new RegExp(`^${turns}$`),
  executions: async (turnId, _, { talk }) => (await talk.effects()).filter((id) => id === turnId).length,
  expected: () => 1,
};

export const SUITE_AGENTS: readonly SuiteAgent[] = [
  real('Codex', 'agent_one', 'codex'),
  real('Claude Code', 'agent_two', 'claude'),
  scripted,
];
