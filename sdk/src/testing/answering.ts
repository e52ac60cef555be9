// Types for responses of the test server.
import type { ActivityEntry, Permission, Sandbox } from '../generated/raw/index.ts';
import type { AgentScript } from './agent-script.ts';
import type { CommandOutcome } from './figures.ts';
import { Refusal } from './requests/refusal.ts';
import type { TestCall, TestRouteName } from './requests/request.ts';
import type { ProcessScript } from './process-script.ts';
import type { Caller, TestState } from './state.ts';

/** Replaces the shell of every sandbox. */
export type CommandHandler = (
  command: string,
  about: {
    sandbox: Sandbox;
    timeoutSeconds: number;
    cwd?: string;
    env?: Readonly<Record<string, string>>;
    user?: string;
    stdin?: string;
  },
) => CommandOutcome | Promise<CommandOutcome>;

export interface RequestContext {
  state: TestState;
  caller: Caller | null;
  exec: CommandHandler;
  agent: AgentScript;
  process: ProcessScript | undefined;
  /** URL of the server. */
  origin: string;
  /** Aborts when the caller leaves. */
  signal: AbortSignal;
  nowMs: number;
  now: () => number;
  /** Duration of transitions. */
  transitionMs: number;
  /** Maximum number of awake sandboxes. */
  concurrentSandboxes: number | null;
  requestId: string;
  /** Headers of the response. */
  headers: Headers;
}

type Answer = (call: TestCall, about: RequestContext) => unknown;

/** Handlers by route name. */
export type Answers = { readonly [name in TestRouteName]?: Answer };

/** Adds an entry of the caller to the feed. */
export function note(
  { state, caller, requestId }: Pick<RequestContext, 'state' | 'caller' | 'requestId'>,
  kind: string,
  subject: ActivityEntry['subject'],
  sandbox?: Sandbox,
  details?: Record<string, unknown>,
): void {
  state.note(kind, subject, {
    requestId,
    ...(caller === null ? {} : { caller }),
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(details === undefined ? {} : { details }),
  });
}

export function requirePermission({ caller }: Pick<RequestContext, 'caller'>, permission: Permission | null): void {
  const scopes = caller?.scopes ?? null;
  if (permission !== null && scopes !== null && !scopes.includes(permission))
    throw new Refusal('permission_denied', `the permission ${permission} is needed`);
}
