// Scripts that play the agent of the test server.
import type { Sandbox } from '../generated/raw/index.ts';

/** An approval that a script asks for. */
export interface TestApproval {
  title: string;
  detail?: string;
  /** Default: `command`. */
  kind?: string;
  workingDirectory?: string;
}

/** A turn, for the script of the agent. */
export interface TestAgentTurn {
  readonly id: string;
  /** Message that started it. */
  readonly text: string;
  readonly sandbox: Sandbox;
  /** Aborts when the turn ends before the script: interrupted, canceled or lost. */
  readonly signal: AbortSignal;
  readonly reply: (text: string) => void;
  /**
   * Waits for an answer. Rejects if it is `cancel`, or if the turn ends. Accepted at once in
   * projects with `agentApprovals: 'never'`.
   */
  readonly ask: (approval: TestApproval) => Promise<'accept' | 'decline'>;
}

/** Plays the agent. The turn completes when it returns, and fails when it throws. */
export type AgentScript = (turn: TestAgentTurn) => void | Promise<void>;
