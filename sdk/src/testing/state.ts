// State of the test server: one org with projects, sandboxes, keys and feed.
import type { ActivityEntry, ApiKey, Org, Project, Sandbox, UsageGuardrails } from '../generated/raw/index.ts';
import { Refusal } from './refusal.ts';
import type { TestSandbox } from './sandbox.ts';

const LETTERS = 'abcdefghijklmnopqrstuvwxyz234567';

/** Random id with a prefix. */
export function newId(prefix: string): string {
  const bytes = crypto.getRandomValues(new Uint8Array(24));
  return `${prefix}_${Array.from(bytes, (byte) => LETTERS[byte % LETTERS.length]).join('')}`;
}

export interface Caller {
  kind: 'session' | 'api_key';
  keyId: string | null;
  scopes: ApiKey['scopes'];
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
  /** Newest first. */
  readonly activity: ActivityEntry[] = [];
  /** Creates by `Idempotency-Key`, with their request. */
  readonly creates = new Map<string, { asked: string; sandboxId: string }>();

  constructor() {
    this.org = { id: newId('org'), name: 'Test org', role: 'owner', createdAt: new Date().toISOString() };
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
  }
}
