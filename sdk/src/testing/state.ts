// State of the test server: one org with projects, sandboxes, keys and feed.
import { ROLE_PERMISSIONS } from '../generated/contract-tables.ts';
import type { ActivityEntry, ApiKey, Org, Project, Sandbox, UsageGuardrails } from '../generated/raw/index.ts';
import type { TestAgentSession } from './agent.ts';
import type { StartedProcess } from './process.ts';
import { newId } from './ids.ts';
import { Refusal } from './requests/refusal.ts';
import type { TestSandbox } from './sandbox.ts';

export interface Caller {
  kind: 'session' | 'api_key' | 'file_link';
  /** Id of the API key or link. */
  keyId: string | null;
  scopes: ApiKey['scopes'];
}

/** Terms of a file link. */
export interface TestFileLink {
  id: string;
  sandboxId: string;
  action: 'read' | 'write';
  path: string;
  expiresAtMs: number;
  maxBytes: number;
  overwrite: boolean;
  creator: Caller | null;
}

export class TestState {
  readonly org: Org;
  readonly userId = newId('usr');
  readonly guardrails: UsageGuardrails = {
    includedMachineHours: null,
    sandboxMachineHourLimit: null,
    sandboxMachineHourLimitOverride: null,
    sandboxOverageEnabled: false,
  };
  readonly projects = new Map<string, Project>();
  readonly sandboxes = new Map<string, TestSandbox>();
  readonly apiKeys = new Map<string, ApiKey>();
  /** By token. */
  readonly callers = new Map<string, Caller>();
  /** By token. */
  readonly fileLinks = new Map<string, TestFileLink>();
  /** Newest first. */
  readonly activity: ActivityEntry[] = [];
  /** Creates by `Idempotency-Key`, with their request. */
  readonly creates = new Map<string, { asked: string; sandboxId: string }>();
  /** Fields of the create of each sandbox, for `getOrCreate`. */
  readonly shapes = new Map<string, Record<string, string>>();
  readonly agentSessions = new Map<string, TestAgentSession>();
  /** Processes of all sandboxes, oldest first. */
  readonly processes = new Map<string, StartedProcess>();
  /** Starts of processes by sandbox and `Idempotency-Key`, with their request. */
  readonly starts = new Map<string, { asked: string; processId: string }>();
  readonly #held = new Set<() => void>();

  constructor() {
    this.org = {
      id: newId('org'),
      name: 'Test org',
      role: 'owner',
      permissions: [...ROLE_PERMISSIONS.owner].sort(),
      createdAt: new Date().toISOString(),
    };
  }

  /** Throws for an unknown org. */
  requireOrg(orgId: string): void {
    if (orgId !== this.org.id) throw new Refusal('org_not_found');
  }

  project(projectId: string): Project {
    const project = this.projects.get(projectId);
    if (project === undefined || project.deletedAt !== null) throw new Refusal('project_not_found');
    return project;
  }

  sandbox(sandboxId: string, nowMs: number): TestSandbox {
    const sandbox = this.sandboxes.get(sandboxId);
    if (sandbox === undefined) throw new Refusal('sandbox_not_found');
    sandbox.catchUp(nowMs);
    return sandbox;
  }

  makeProject(fields: Partial<Project>, nowMs: number): Project {
    const id = newId('prj');
    const now = new Date(nowMs).toISOString();
    const project: Project = {
      id,
      orgId: this.org.id,
      name: `project-${id.slice(4, 12)}`,
      useCase: 'internal',
      defaultRepository: null,
      defaultBranch: null,
      defaultProfile: null,
      defaultPersistencePolicy: null,
      defaultIdleMinutes: null,
      defaultEgress: null,
      wakeOnUse: false,
      agentApprovals: 'ask',
      sandboxMachineHourLimit: null,
      metadata: {},
      hasRepoCredentials: false,
      createdAt: now,
      updatedAt: now,
      deletedAt: null,
      ...fields,
    };
    this.projects.set(id, project);
    return project;
  }

  /** Lets held responses check their condition. */
  changed(): void {
    for (const check of this.#held) check();
  }

  /** Resolves when the condition is met, after the time, or when aborted. */
  async until(isMet: () => boolean, ms: number, signal: AbortSignal): Promise<void> {
    let check = (): void => undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve) => {
      check = () => {
        if (isMet() || signal.aborted) resolve();
      };
      timer = setTimeout(resolve, ms);
      signal.addEventListener('abort', check);
      this.#held.add(check);
      check();
    });
    clearTimeout(timer);
    signal.removeEventListener('abort', check);
    this.#held.delete(check);
  }

  /** A sandbox has a new status without a request. Its processes end with its VM. */
  entered(sandbox: Sandbox): void {
    const hasVm = sandbox.status !== 'deleted' && sandbox.status !== 'failed';
    for (const process of this.processes.values())
      if (!hasVm && process.sandbox.id === sandbox.id) process.stop({ reason: 'lost' });
    this.note(`sandbox_${sandbox.status}`, { kind: 'sandbox', id: sandbox.id }, { sandbox });
  }

  note(
    kind: string,
    subject: ActivityEntry['subject'],
    about: { caller?: Caller; sandbox?: Sandbox; requestId?: string; details?: Record<string, unknown> },
  ): void {
    const { caller, sandbox, requestId = null, details = {} } = about;
    this.activity.unshift({
      id: newId('act'),
      at: new Date().toISOString(),
      kind,
      actor:
        caller === undefined
          ? { kind: 'system', id: null, userId: null }
          : { kind: caller.kind, id: caller.keyId, userId: this.userId },
      subject,
      orgId: this.org.id,
      projectId: sandbox?.projectId ?? (subject.kind === 'project' ? subject.id : null),
      sandboxId: sandbox?.id ?? null,
      reason: null,
      requestId,
      details,
    });
    this.changed();
  }
}
