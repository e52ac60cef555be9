// What an answer of the test server is made with.
import type { ActivityEntry, Sandbox } from '../generated/raw/index.ts';
import type { CommandOutcome } from './figures.ts';
import type { TestCall, TestRouteName } from './request.ts';
import type { Caller, TestState } from './state.ts';

/** Stands for the shell of every sandbox. */
export type CommandHandler = (
  command: string,
  about: { sandbox: Sandbox; timeoutSeconds: number },
) => CommandOutcome | Promise<CommandOutcome>;

export interface Answering {
  state: TestState;
  caller: Caller | null;
  exec: CommandHandler;
  nowMs: number;
  /** How long transitions take. */
  transitionMs: number;
  /** Sandboxes that may be awake at once. */
  concurrentSandboxes: number | null;
  requestId: string;
  /** Headers of the answer. */
  headers: Headers;
}

type Answer = (call: TestCall, about: Answering) => unknown;

/** Answers by the name of their route. */
export type Answers = { readonly [name in TestRouteName]?: Answer };

/** Leaves a row in the feed, by the caller. */
export function note(
  { state, caller, requestId }: Pick<Answering, 'state' | 'caller' | 'requestId'>,
  kind: string,
  subject: ActivityEntry['subject'],
  sandbox?: Sandbox,
): void {
  state.note(kind, subject, {
    requestId,
    ...(caller === null ? {} : { caller }),
    ...(sandbox === undefined ? {} : { sandbox }),
  });
}
