// What the test server answers to each route that it has, as the contract says it. Routes that are not here are refused by name.
import { SANDBOX_STATES } from '../generated/contract-tables.ts';
import type { ActivityEntry, ApiKey, Project, Sandbox } from '../generated/raw/index.ts';
import { execResultOf, liveMetrics, type CommandOutcome } from './figures.ts';
import { newestFirst, paged } from './paged.ts';
import { Refusal } from './refusal.ts';
import type { TestCall, TestRouteName } from './request.ts';
import { newRecord, TestSandbox, type SandboxAction } from './sandbox.ts';
import { newId, type Caller, type TestState } from './state.ts';

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

const TOKEN_BYTES = 32;

export const ANSWERS: { readonly [name in TestRouteName]?: Answer } = {
  getHealth: () => ({ ok: true, service: 'berth' }),
  getMe: (_, { state }) => ({ id: state.userId, email: 'owner@example.test', displayName: 'Test Owner' }),
  listMyOrgs: (_, { state }) => ({ orgs: [state.org] }),
  listMembers: ({ query }, { state }) => {
    const owner = {
      userId: state.userId,
      email: 'owner@example.test',
      displayName: 'Test Owner',
      role: 'owner',
      joinedAt: state.org.createdAt,
    };
    return paged('members', [owner], query, ({ userId }) => userId);
  },
  listProjects: ({ query }, { state }) =>
    paged('projects', newestFirst([...state.projects.values()].filter((one) => one.deletedAt === null)), query),
  createProject: ({ body }, { state, nowMs, ...about }) => {
    const { sandboxMachineHourLimit: _, repoCredentials, ...fields } = (body ?? {}) as Partial<Project> & { repoCredentials?: unknown };
    const project = state.makeProject({ ...fields, hasRepoCredentials: repoCredentials != null }, nowMs);
    note({ state, ...about }, 'project_created', { kind: 'project', id: project.id });
    return { project };
  },
  getProject: ({ params }, { state }) => ({ project: state.project(params['projectId'] ?? '') }),
  updateProject: ({ params, body }, { state, nowMs, ...about }) => {
    const project = state.project(params['projectId'] ?? '');
    const { sandboxMachineHourLimit: _, repoCredentials, ...fields } = (body ?? {}) as Partial<Project> & { repoCredentials?: unknown };
    Object.assign(project, fields, { updatedAt: new Date(nowMs).toISOString() });
    if (repoCredentials !== undefined) project.hasRepoCredentials = repoCredentials !== null;
    note({ state, ...about }, 'project_updated', { kind: 'project', id: project.id });
    return { project };
  },
  deleteProject: ({ params }, { state, nowMs, ...about }) => {
    const project = state.project(params['projectId'] ?? '');
    const left = [...state.sandboxes.values()].filter(
      ({ record }) => record.projectId === project.id && record.status !== 'deleted',
    ).length;
    if (left > 0) throw new Refusal('project_has_sandboxes', `the project has ${left} sandboxes that are not deleted`);
    project.deletedAt = new Date(nowMs).toISOString();
    note({ state, ...about }, 'project_deleted', { kind: 'project', id: project.id });
    return { project };
  },
  listApiKeys: ({ query }, { state }) => paged('apiKeys', newestFirst([...state.apiKeys.values()]), query),
  createApiKey: ({ body }, { state, nowMs, ...about }) => {
    const token = `brt_${hex(crypto.getRandomValues(new Uint8Array(TOKEN_BYTES)))}`;
    const apiKey = makeApiKey(state, token, { name: body.name, scopes: body.scopes ?? null, days: body.expiresInDays ?? null }, nowMs);
    note({ state, ...about }, 'api_key_created', { kind: 'api_key', id: apiKey.id });
    return { apiKey, token };
  },
  revokeApiKey: ({ params }, { state, nowMs, ...about }) => {
    const apiKey = state.apiKeys.get(params['keyId'] ?? '');
    if (apiKey === undefined) throw new Refusal('api_key_not_found');
    if (apiKey.revokedAt === null) {
      apiKey.revokedAt = new Date(nowMs).toISOString();
      for (const [token, caller] of state.callers) if (caller.keyId === apiKey.id) state.callers.delete(token);
      note({ state, ...about }, 'api_key_revoked', { kind: 'api_key', id: apiKey.id });
    }
    return { apiKey };
  },
  listActivity: ({ query }, { state }) => {
    const fits = (entry: ActivityEntry): boolean =>
      (['kind', 'projectId', 'sandboxId'] as const).every((name) => query[name] === undefined || entry[name] === query[name]);
    return paged('activity', state.activity.filter(fits), { limit: 50, ...query });
  },
  listSandboxes: ({ query }, { state, nowMs }) => {
    const all = [...state.sandboxes.values()].map((one) => {
      one.catchUp(nowMs);
      return one.record;
    });
    const shown = all.filter(
      ({ status, endUserId }) => status !== 'deleted' && (query['endUserId'] === undefined || endUserId === query['endUserId']),
    );
    return paged('sandboxes', newestFirst(shown), query);
  },
  createSandbox: (call, about) => ({ sandbox: createSandbox(call, about) }),
  getSandbox: ({ params }, { state, nowMs }) => ({ sandbox: state.sandbox(params['sandboxId'] ?? '', nowMs).record }),
  execInSandbox: async ({ params, body }, about) => {
    const { record } = awake('exec', params, about);
    note(about, 'sandbox_exec', { kind: 'sandbox', id: record.id }, record);
    return execResultOf(await about.exec(body.command, { sandbox: record, timeoutSeconds: body.timeoutSeconds }));
  },
  listFiles: ({ params, query }, about) => awake('files_read', params, about).files.list(String(query['path'])),
  snapshotFiles: ({ params, query }, about) => awake('files_read', params, about).files.tree(String(query['path']), Number(query['depth'])),
  readFile: ({ params, query }, about) => awake('files_read', params, about).files.read(String(query['path'])),
  writeFile: ({ params, body }, about) => {
    const { files, record } = awake('files_write', params, about);
    const written = files.write(body.path, body.content, body.encoding);
    note(about, 'sandbox_file_written', { kind: 'sandbox', id: record.id }, record);
    return written;
  },
  sleepSandbox: sleep,
  stopSandbox: sleep,
  wakeSandbox: wake,
  resumeSandbox: wake,
  destroySandbox: (call, about) =>
    transition('destroy', 'sandbox_destroy_requested', call, about, (one) => one.destroy(about.nowMs, about.transitionMs)),
  resizeSandbox: ({ params, body }, about) => {
    const one = about.state.sandbox(params['sandboxId'] ?? '', about.nowMs);
    one.allows('resize', 'a resize');
    const { allocated_vcpu, allocated_memory_gb, allocated_disk_gb } = one.record;
    if (body.diskGb !== undefined && body.diskGb < allocated_disk_gb)
      throw new Refusal('allocation_out_of_bounds', `the disk has ${allocated_disk_gb} GB and never shrinks`);
    one.setSize({
      vcpu: body.vcpu ?? allocated_vcpu,
      memoryGb: body.memoryGb ?? allocated_memory_gb,
      diskGb: body.diskGb ?? allocated_disk_gb,
    });
    note(about, 'sandbox_resize_requested', { kind: 'sandbox', id: one.record.id }, one.record);
    return { sandbox: one.record };
  },
  renewSandbox: ({ params }, about) => {
    const one = about.state.sandbox(params['sandboxId'] ?? '', about.nowMs);
    const { record } = one;
    if (record.ttlSeconds === null) throw new Refusal('not_ephemeral');
    one.allows('renew', 'a renewal');
    record.expiresAt = new Date(Date.parse(record.expiresAt ?? '') + record.ttlSeconds * 1_000).toISOString();
    note(about, 'sandbox_renewed', { kind: 'sandbox', id: record.id }, record);
    return { sandbox: record };
  },
  getLiveMetrics: ({ params }, about) => ({ metrics: liveMetrics(awake('metrics_live', params, about).record, about.nowMs) }),
  sampleMetrics: ({ params }, about) => {
    const { record } = awake('metrics_sample', params, about);
    const size = { vcpu: record.allocated_vcpu, memoryGb: record.allocated_memory_gb, diskGb: record.allocated_disk_gb };
    note(about, 'sandbox_metrics_sample', { kind: 'sandbox', id: record.id }, record);
    return {
      sample: {
        sampledAt: new Date(about.nowMs).toISOString(),
        currentAllocation: size,
        recommendedAllocation: size,
        storedAsPending: false,
        reason: 'the test server uses nothing',
        cpuUsedPercent: null,
        memoryUsedPercent: 10,
        diskUsedPercent: 5,
      },
    };
  },
};

function createSandbox({ body, headers }: TestCall, about: Answering): Sandbox {
  const { state, nowMs, transitionMs, concurrentSandboxes } = about;
  const key = headers.get('idempotency-key');
  const asked = JSON.stringify(body);
  const before = key === null ? undefined : state.creates.get(key);
  if (before !== undefined) {
    if (before.asked !== asked) throw new Refusal('idempotency_key_conflict');
    about.headers.set('idempotent-replayed', 'true');
    return state.sandbox(before.sandboxId, nowMs).record;
  }
  const project = state.projects.get(body.projectId);
  if (project === undefined || project.deletedAt !== null) throw new Refusal('unknown_project');
  if ((body.mode === undefined) !== (body.ttlSeconds === undefined))
    throw new Refusal('invalid_request', 'body.ttlSeconds belongs to mode ephemeral');
  if (body.mode === 'ephemeral' && project.useCase !== 'external') throw new Refusal('ephemeral_not_allowed');
  requireRoom(state, nowMs, concurrentSandboxes);
  const sandbox = new TestSandbox(newRecord(newId('sbx'), body, project, nowMs), (record) =>
    state.note(`sandbox_${record.status}`, { kind: 'sandbox', id: record.id }, { sandbox: record }),
  );
  state.sandboxes.set(sandbox.record.id, sandbox);
  if (key !== null) state.creates.set(key, { asked, sandboxId: sandbox.record.id });
  note(about, 'sandbox_created', { kind: 'sandbox', id: sandbox.record.id }, sandbox.record);
  sandbox.provision(nowMs, transitionMs);
  return answeredNow(sandbox, headers, about);
}

function sleep(call: TestCall, about: Answering): unknown {
  return transition('sleep', 'sandbox_sleep_requested', call, about, (one) => one.sleep(about.nowMs, about.transitionMs));
}

function wake(call: TestCall, about: Answering): unknown {
  return transition('wake', 'sandbox_wake_requested', call, about, (one) => {
    requireRoom(about.state, about.nowMs, about.concurrentSandboxes);
    one.wake(about.nowMs, about.transitionMs);
  });
}

function transition(
  action: SandboxAction,
  kind: string,
  { params, headers }: TestCall,
  about: Answering,
  begin: (one: TestSandbox) => void,
): unknown {
  const one = about.state.sandbox(params['sandboxId'] ?? '', about.nowMs);
  if (one.allows(action, `to ${action}`)) {
    begin(one);
    note(about, kind, { kind: 'sandbox', id: one.record.id }, one.record);
  }
  return { sandbox: answeredNow(one, headers, about) };
}

/** As the record is in the answer: with what takes no time done already, unless it is not to be waited for. */
function answeredNow(one: TestSandbox, headers: Headers, { nowMs, headers: answer }: Answering): Sandbox {
  if (headers.get('prefer') !== 'respond-async') one.catchUp(nowMs);
  else answer.set('preference-applied', 'respond-async');
  return structuredClone(one.record);
}

/** The sandbox when it can do this; one that sleeps is woken for it where its project says so. */
function awake(action: SandboxAction, params: TestCall['params'], about: Answering): TestSandbox {
  const one = about.state.sandbox(params['sandboxId'] ?? '', about.nowMs);
  if (one.status === 'stopped' && !action.startsWith('metrics') && about.state.project(one.record.projectId).wakeOnUse) {
    one.wake(about.nowMs, 0);
    one.catchUp(about.nowMs);
  }
  one.allows(action, `a call of ${action}`);
  one.record.lastActiveAt = new Date(about.nowMs).toISOString();
  return one;
}

function requireRoom(state: TestState, nowMs: number, limit: number | null): void {
  for (const one of state.sandboxes.values()) one.catchUp(nowMs);
  const awake = [...state.sandboxes.values()].filter(({ status }) => SANDBOX_STATES[status].concurrent).length;
  if (limit !== null && awake >= limit) throw new Refusal('concurrent_sandbox_limit', `the plan allows ${limit} sandboxes awake at once`);
}

/** Puts a key and its token where callers are found. */
export function makeApiKey(
  state: TestState,
  token: string,
  { name, scopes, days }: { name: string; scopes: ApiKey['scopes']; days: number | null },
  nowMs: number,
): ApiKey {
  const apiKey: ApiKey = {
    id: newId('key'),
    orgId: state.org.id,
    name,
    tokenPrefix: token.slice(0, 7),
    scopes,
    createdBy: state.userId,
    createdAt: new Date(nowMs).toISOString(),
    expiresAt: days === null ? null : new Date(nowMs + days * 86_400_000).toISOString(),
    revokedAt: null,
    lastUsedAt: null,
  };
  state.apiKeys.set(apiKey.id, apiKey);
  state.callers.set(token, { kind: 'api_key', keyId: apiKey.id, scopes });
  return apiKey;
}

function note(
  { state, caller, requestId }: Pick<Answering, 'state' | 'caller' | 'requestId'>,
  kind: string,
  subject: ActivityEntry['subject'],
  sandbox?: Sandbox,
): void {
  state.note(kind, subject, { requestId, ...(caller === null ? {} : { caller }), ...(sandbox === undefined ? {} : { sandbox }) });
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
