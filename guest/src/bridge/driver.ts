// The interface between a bridge and one agent's protocol. The bridge owns turns, request ids,
// replies and their files; a driver owns the agent's process and its native ids.
import type { ChildProcess } from 'node:child_process';
import type { AgentErrorCode } from '@berth/protocol/agent-errors.ts';

/** Kind of an approval. */
export type PromptKind = 'command' | 'file_change' | 'permissions' | 'tool';

export type Decision = 'accept' | 'decline' | 'cancel';

/** An approval that the agent asks for. */
export interface AgentPrompt {
  kind: PromptKind;
  /** Plain text; the bridge removes control characters and truncates. */
  title: string;
  detail: string;
  workingDirectory: string | null;
}

/** End of a turn. `message`: the agent's error, unfit to be shown as it is. */
export type TurnEnd = { state: 'completed' | 'canceled' } | { state: 'failed'; message: string };

/** Events of a driver. After `exited` there is none. */
export interface DriverEvents {
  /** A completed reply of the active turn. */
  reply(text: string): void;
  /** Returns the function that withdraws the approval, at the end of its turn for example. */
  ask(prompt: AgentPrompt, answer: (decision: Decision) => void): () => void;
  /** Any event of the active turn. */
  sign(): void;
  /** The agent's process exited, or broke its protocol and was killed. Not called after `close`. */
  exited(message: string): void;
}

/** Events of a driver whose program a person uses too. */
export interface TerminalEvents extends DriverEvents {
  /** The program shows the conversation `savedId` of the driver; messages go to it from now on. */
  shows(): void;
  /** A person begins a turn, which `end` runs. False, without a turn, while another is active. */
  begins(text: string, end: () => Promise<TurnEnd>): boolean;
}

export interface DriverStart {
  /**
   * Conversation to continue, as returned by an earlier start; null for a new one. Agents save a
   * conversation with its first message: until a turn was run, the bridge passes null.
   */
  savedId: string | null;
  /** Address of the host's model gateway, such as `http://10.0.0.1:354`; null: own sign-in. */
  gatewayUrl: string | null;
  /** Working directory of the agent. */
  folder: string;
  /** Version and paths of the agent's programs, from the image's list: `codex` or `claude`. */
  program: { version: string; paths: Readonly<Record<string, string>> };
  /**
   * Starts a program as the sandbox user in the session's cgroup, in `folder`, with pipes as
   * standard streams. `env` is added to the user's environment.
   */
  spawn(program: string, args: readonly string[], env: Readonly<Record<string, string>>): ChildProcess;
  events: DriverEvents;
  signal: AbortSignal;
}

export interface TerminalStart extends DriverStart {
  /** Refuses to start without the saved conversation. */
  mustResume: boolean;
  events: TerminalEvents;
}

/** An agent that is ready for its user. */
export interface ReadyAgent {
  /** Process of the agent. */
  readonly pid: number;
  /** Its further processes. */
  readonly otherPids?: readonly number[];
  /** Ends the agent. */
  close(): Promise<void>;
}

/** An agent that is ready for messages. */
export interface AgentDriver extends ReadyAgent {
  /** Conversation id for a later start; null while a program shows none: it takes no messages. */
  readonly savedId: string | null;
  /** Runs a turn. The bridge never calls it while a turn is active. */
  run(turnId: string, text: string): Promise<TurnEnd>;
  /** Requests the end of the active turn and of the commands that it runs; its `run` resolves. */
  interrupt(): Promise<void>;
}

/** Starts an agent; resolves when it is ready for a message. Rejects with {@link DriverRefusal}. */
export type StartDriver = (start: DriverStart) => Promise<AgentDriver>;

/** Reason why an agent cannot start. */
export class DriverRefusal extends Error {
  readonly code: AgentErrorCode;

  constructor(code: AgentErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
