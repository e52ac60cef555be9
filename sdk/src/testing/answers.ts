// Handlers of the test server, following the contract. Routes without a handler are rejected by
// name.
import { ACTIVITY_FOLLOW } from '../generated/limits.ts';
import type { ActivityEntry, ApiKey, Project } from '../generated/raw/index.ts';
import { NDJSON } from '../transport/transport.ts';
import { AGENT_ANSWERS } from './agent-answers.ts';
import { note, requirePermission, type Answers } from './answering.ts';
import { FILE_ANSWERS } from './file-answers.ts';
import { hold } from './hold.ts';
import { newestFirst, paged } from './requests/paged.ts';
import { Refusal } from './requests/refusal.ts';
import { PROCESS_ANSWERS } from './process-answers.ts';
import { SANDBOX_ANSWERS } from './sandbox-answers.ts';
import { newId } from './ids.ts';
import type { TestState } from './state.ts';
import { USAGE_ANSWERS } from './usage-answers.ts';

const TOKEN_BYTES = 32;

export const ANSWERS: Answers = {
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
    return paged('members', [owner], query, { idOf: ({ userId }) => userId });
  },
  listProjects: ({ query }, { state }) =>
    paged('projects', newestFirst([...state.projects.values()].filter((one) => one.deletedAt === null)), query),
  createProject: ({ body }, { state, nowMs, ...about }) => {
    const { repoCredentials, ...fields } = settable(body);
    requirePermission(about, fields.agentApprovals === 'never' ? 'agent_approvals.disable' : null);
    const project = state.makeProject({ ...fields, hasRepoCredentials: repoCredentials != null }, nowMs);
    note({ state, ...about }, 'project_created', { kind: 'project', id: project.id });
    return { project };
  },
  getProject: ({ params }, { state }) => ({ project: state.project(params['projectId'] ?? '') }),
  updateProject: ({ params, body }, { state, nowMs, ...about }) => {
    const project = state.project(params['projectId'] ?? '');
    const { repoCredentials, ...fields } = settable(body);
    const disables = fields.agentApprovals === 'never' && project.agentApprovals !== 'never';
    requirePermission(about, disables ? 'agent_approvals.disable' : null);
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
    const apiKey = makeApiKey(
      state,
      token,
      { name: body.name, scopes: body.scopes ?? null, days: body.expiresInDays ?? null },
      nowMs,
    );
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
      (['kind', 'projectId', 'sandboxId'] as const).every(
        (name) => query[name] === undefined || entry[name] === query[name],
      );
    return paged('activity', state.activity.filter(fits), { limit: 50, ...query });
  },
  followActivity: async (call, { state, signal, headers }) => {
    const { since, kind, exceptKind = [], limit, ...named } = call.query;
    const kinds = kind === undefined ? undefined : [kind].flat();
    const fits = (entry: ActivityEntry): boolean =>
      (kinds?.includes(entry.kind) ?? true) &&
      ![exceptKind].flat().includes(entry.kind) &&
      (['projectId', 'sandboxId'] as const).every((name) => named[name] === undefined || entry[name] === named[name]);
    // A cursor is the number of entries before it, newest last.
    const from = since === undefined ? state.activity.length : Number(since);
    const found = (): [ActivityEntry, number][] =>
      state.activity
        .toReversed()
        .map((entry, index): [ActivityEntry, number] => [entry, index + 1])
        .slice(from)
        .filter(([entry]) => fits(entry));
    if (since !== undefined) await hold(call, { state, signal, headers }, () => found().length > 0);
    const all = found();
    const page = all.slice(0, Number(limit ?? ACTIVITY_FOLLOW.default));
    const hasMore = page.length < all.length;
    const cursor = String(hasMore ? page.at(-1)?.[1] : state.activity.length);
    return { activity: page.map(([entry]) => entry), cursor, hasMore };
  },
  exportActivity: ({ query }, { state, headers }) => {
    const entries = state.activity.map((entry) => ({ ...entry, cursor: entry.id })).toReversed();
    const page = paged('activity', entries, query)['activity'];
    headers.set('content-type', NDJSON);
    return page;
  },
  ...USAGE_ANSWERS,
  ...SANDBOX_ANSWERS,
  ...FILE_ANSWERS,
  ...AGENT_ANSWERS,
  ...PROCESS_ANSWERS,
};

const SETTABLE = [
  ...(['name', 'useCase', 'defaultRepository', 'defaultBranch', 'defaultProfile', 'defaultPersistencePolicy'] as const),
  ...(['defaultIdleMinutes', 'defaultEgress', 'wakeOnUse', 'agentApprovals', 'metadata', 'repoCredentials'] as const),
];

/**
 * Picks the fields of a project; ignores others. Refuses another spelling of `external`, as the
 * service does.
 */
function settable(body: Record<string, unknown> | undefined): Partial<Project> & { repoCredentials?: unknown } {
  const useCase = body?.['useCase'];
  if (typeof useCase === 'string' && useCase !== 'external' && useCase.trim().toLowerCase() === 'external') {
    const message = 'body.useCase must be spelled "external", in lower case and without white space';
    throw new Refusal('invalid_request', message);
  }
  return Object.fromEntries(SETTABLE.flatMap((name) => (body?.[name] === undefined ? [] : [[name, body[name]]])));
}

/** Registers a key and its token. */
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
    viaSso: false,
    createdAt: new Date(nowMs).toISOString(),
    expiresAt: days === null ? null : new Date(nowMs + days * 86_400_000).toISOString(),
    revokedAt: null,
    lastUsedAt: null,
  };
  state.apiKeys.set(apiKey.id, apiKey);
  state.callers.set(token, { kind: 'api_key', keyId: apiKey.id, scopes });
  return apiKey;
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
