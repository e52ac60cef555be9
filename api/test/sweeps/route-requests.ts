// A successful request for each route of the contract: path, body and required state. A route
// without an entry fails the type check. Sweeps use these requests; expected responses are in the
// sweeps.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { getDiagnostics } from '@berth/contract/diagnostics/diagnostics.ts';
import type { Route } from '@berth/contract/route/route.ts';
import type { RouteName, RouteNamed } from '@berth/contract/routes.ts';
import type { SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import type { z } from 'zod';
import { recordView } from '../../src/services/agents/records/views.ts';
import { insertActivity } from '../../src/store/activity/activity.ts';
import { insertAgentSession } from '../../src/store/agents/sessions.ts';
import { newId } from '../../src/store/database/ids.ts';
import { findRole, insertMembership } from '../../src/store/people/identity.ts';
import { insertPreviewLink } from '../../src/store/previews/links.ts';
import { insertProject } from '../../src/store/orgs/projects.ts';
import type { NewSandbox } from '../../src/store/database/schema.ts';
import { signInAs, type CallOptions, type TestApi, type TestOrg } from '../world/api.ts';
import type { GuestSession } from '../world/guests/agent-guests.ts';
import { SOLD_PLAN } from '../world/payments-stand-in.ts';
import {
  makeDomainRow,
  newDomainName,
  makeAgentTokenRow,
  makeInvitationRow,
  makeKeyRow,
  makePerson,
  type Person,
} from '../world/people-rows.ts';

/** Org and caller of a request. */
interface Setting {
  api: TestApi;
  org: TestOrg;
  caller: Person;
}

/** A request that would succeed once. */
export interface PreparedRequest {
  params: Readonly<Record<string, string>>;
  body?: unknown;
  /** Content of an upload. */
  rawBody?: string;
  /** Restores the caller's state after a success. */
  undo?(): Promise<void>;
}

type NamesIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;
type BodyOf<R extends Route> = R['request'] extends { body: infer B extends z.ZodType } ? z.input<B> : undefined;
type Prepared<R extends Route> = {
  params: { readonly [name in NamesIn<R['path']>]: string };
  undo?(): Promise<void>;
} & (R extends { upload: true } ? { rawBody: string } : unknown) &
  (undefined extends BodyOf<R> ? { body?: BodyOf<R> } : { body: BodyOf<R> });
type Recipe<R extends Route> = (setting: Setting) => Prepared<R> | Promise<Prepared<R>>;
type AnyRecipe = (setting: Setting) => PreparedRequest | Promise<PreparedRequest>;

const nothing = (): { params: Readonly<Record<string, never>> } => ({ params: {} });
const inOrg = ({ org }: Setting): { params: { orgId: string } } => ({ params: { orgId: org.orgId } });
const onSandbox =
  (status: SandboxStatus, changes: () => Partial<NewSandbox> = () => ({})) =>
  async ({ api, org }: Setting): Promise<{ params: { sandboxId: string } }> => {
    const { id } = await api.makeSandbox(status, { org_id: org.orgId, project_id: org.projectId, ...changes() });
    return { params: { sandboxId: id } };
  };
const onReady = onSandbox('ready');
const ephemeral = (): Partial<NewSandbox> => ({
  mode: 'ephemeral',
  ttl_seconds: 60,
  expires_at: new Date(Date.now() + 60_000),
});

/** A viewer of the org, used by no other request. */
async function onMember({ api, org }: Setting): Promise<{ params: { orgId: string; userId: string } }> {
  const { userId } = await makePerson(api.db, { [org.orgId]: 'viewer' });
  return { params: { orgId: org.orgId, userId } };
}

/** An invitation of the caller into an org of which the caller is no member. */
async function onReceived({ api, caller }: Setting): Promise<{ params: { token: string } }> {
  const { orgId } = await api.makeOrg();
  const { token } = await makeInvitationRow(api.db, { orgId, email: caller.email });
  return { params: { token } };
}

async function onOwnAgentToken({ api, caller }: Setting): Promise<{ params: { tokenId: string } }> {
  const { id } = await makeAgentTokenRow(api.db, caller);
  return { params: { tokenId: id } };
}

/** A token of a member. */
async function onMembersToken(setting: Setting): Promise<{ params: { orgId: string; tokenId: string } }> {
  const { params } = await onMember(setting);
  const { id } = await makeAgentTokenRow(setting.api.db, params);
  return { params: { orgId: params.orgId, tokenId: id } };
}

async function onNewProject({ api, org }: Setting): Promise<{ params: { orgId: string; projectId: string } }> {
  const id = newId('project');
  await insertProject(api.db, { id, org_id: org.orgId, name: 'swept', use_case: 'internal', created_by: org.userId });
  return { params: { orgId: org.orgId, projectId: id } };
}

async function onAgentOfProject(
  setting: Setting,
): Promise<{ params: { orgId: string; projectId: string; agent: string } }> {
  const { params } = await onNewProject(setting);
  return { params: { ...params, agent: 'agent_one' } };
}

/** A public link of a sandbox. */
async function onPreview(setting: Setting): Promise<{ params: { sandboxId: string; previewId: string } }> {
  const { api, org } = setting;
  const { sandboxId } = (await onReady(setting)).params;
  const { id } = await insertPreviewLink(api.db, {
    id: newId('previewLink'),
    sandbox_id: sandboxId,
    org_id: org.orgId,
    project_id: org.projectId,
    port: 3_000,
    label: null,
    end_user_id: null,
    created_by: org.userId,
    api_key_id: null,
    embeddable: false,
    expiresInSeconds: 60,
  });
  return { params: { sandboxId, previewId: id } };
}

/** A session with a ready bridge, in row and guest alike; `change` the guest's before its row. */
const onAgentSession =
  (change: (guest: GuestSession) => void = () => undefined) =>
  async (setting: Setting): Promise<{ params: { sessionId: string } }> => {
    const { api } = setting;
    const { sandboxId } = (await onReady(setting)).params;
    const sandbox = await api.db
      .selectFrom('sandbox')
      .selectAll()
      .where('id', '=', sandboxId)
      .executeTakeFirstOrThrow();
    const { id } = await insertAgentSession(api.db, sandbox, {
      kind: 'session',
      id: 'ses_1',
      userId: setting.org.userId,
    });
    const guest = api.agents.add(sandboxId, id);
    change(guest);
    await recordView(api.db, id, { epoch: sandbox.epoch, view: guest.view });
    return { params: { sessionId: id } };
  };
const withTurn = (guest: GuestSession): void => void guest.begin(newId('agentTurn'), 'swept', '');
const withPrompt = (guest: GuestSession): void => {
  withTurn(guest);
  guest.ask();
};

/** A process in a terminal. */
const onProcess = async (setting: Setting): Promise<{ params: { sandboxId: string; processId: string } }> => {
  const { sandboxId } = (await onReady(setting)).params;
  const processId = newId('process');
  const asked = {
    command: 'true',
    terminal: { rows: 24, cols: 80 },
    stdin: true,
    keepAwake: false,
    name: null,
    limitSeconds: null,
  };
  const body = { ...asked, outputBytes: 65_536, digest: '0'.repeat(64) };
  const call = { vmId: sandboxId, method: 'PUT', processId, verb: '', query: new URLSearchParams(), body };
  await setting.api.front.processes.answer(call, AbortSignal.timeout(60_000));
  return { params: { sandboxId, processId } };
};

const RECIPES: { readonly [name in RouteName]: Recipe<RouteNamed<name>> } = {
  getHealth: nothing,
  getService: nothing,
  listHosts: nothing,
  getHost: ({ api }) => ({ params: { hostId: api.host.hostId } }),
  getMe: nothing,
  updateMe: () => ({ params: {}, body: { displayName: `Swept ${randomInt(1e9)}` } }),
  listMyOrgs: nothing,
  leaveOrg: async ({ api, org, caller }) => {
    const role = await findRole(api.db, org.orgId, caller.userId);
    return {
      params: { orgId: org.orgId },
      undo: async () => {
        const stayed = (await findRole(api.db, org.orgId, caller.userId)) !== undefined;
        if (role !== undefined && !stayed)
          await insertMembership(api.db, { orgId: org.orgId, userId: caller.userId, role });
      },
    };
  },
  listAgentTokens: nothing,
  createAgentToken: () => ({ params: {}, body: { name: 'swept' } }),
  revokeAgentToken: onOwnAgentToken,
  listOrgAgentTokens: inOrg,
  revokeOrgAgentToken: onMembersToken,
  listSignIns: nothing,
  endSignIn: async ({ api, caller }) => ({ params: { signInId: (await signInAs(api.db, caller.userId)).loginId } }),
  endOtherSignIns: async ({ api, caller }) => {
    await signInAs(api.db, caller.userId);
    return { params: {} };
  },
  updateOrg: (setting) => ({ ...inOrg(setting), body: { name: `swept-${randomInt(1e9)}` } }),
  createOrg: () => ({ params: {}, body: { name: 'swept' } }),
  getSubscription: inOrg,
  listPlans: inOrg,
  createCheckout: (setting) => ({ ...inOrg(setting), body: { plan: SOLD_PLAN.id } }),
  listMembers: inOrg,
  updateMember: async (setting) => ({ ...(await onMember(setting)), body: { role: 'operator' } }),
  removeMember: onMember,
  getSso: inOrg,
  updateSso: async ({ api, org }) => {
    const required = (sso_required: boolean): Promise<unknown> =>
      api.db.updateTable('org').set({ sso_required }).where('id', '=', org.orgId).execute();
    await required(true);
    return { params: { orgId: org.orgId }, body: { required: false }, undo: async () => void (await required(false)) };
  },
  claimDomain: async ({ api, org }) => {
    await api.db.deleteFrom('org_domain').where('org_id', '=', org.orgId).where('verified_at', 'is', null).execute();
    return { params: { orgId: org.orgId }, body: { domain: newDomainName() } };
  },
  verifyDomain: async ({ api, org }) => {
    // Counts attempts of the org, of which each test has few.
    await api.db.deleteFrom('throttle').execute();
    await api.db.updateTable('org').set({ sso_required: false }).where('id', '=', org.orgId).execute();
    const { id, domain, challenge } = await makeDomainRow(api.db, { orgId: org.orgId, state: 'claimed' });
    api.txtRecords.set(`_berth-challenge.${domain}`, [challenge]);
    return { params: { orgId: org.orgId, domainId: id } };
  },
  removeDomain: async ({ api, org }) => {
    const { id } = await makeDomainRow(api.db, { orgId: org.orgId, state: 'claimed' });
    return { params: { orgId: org.orgId, domainId: id } };
  },
  listInvitations: inOrg,
  createInvitation: (setting) => ({ ...inOrg(setting), body: { email: `${newId('user')}@example.test` } }),
  revokeInvitation: async ({ api, org }) => {
    const { id } = await makeInvitationRow(api.db, { orgId: org.orgId, email: `${newId('user')}@example.test` });
    return { params: { orgId: org.orgId, invitationId: id } };
  },
  getInvitation: onReceived,
  acceptInvitation: onReceived,
  listApiKeys: inOrg,
  createApiKey: (setting) => ({ ...inOrg(setting), body: { name: 'swept' } }),
  revokeApiKey: async ({ api, org }) => {
    const { id } = await makeKeyRow(api.db, { orgId: org.orgId, createdBy: org.userId });
    return { params: { orgId: org.orgId, keyId: id } };
  },
  listActivity: inOrg,
  followActivity: inOrg,
  exportActivity: inOrg,
  getOrgUsage: inOrg,
  getDailyUsage: inOrg,
  getEndUserUsage: inOrg,
  listProjects: inOrg,
  createProject: (setting) => ({ ...inOrg(setting), body: { name: 'swept', useCase: 'external' } }),
  getProject: ({ org }) => ({ params: { orgId: org.orgId, projectId: org.projectId } }),
  updateProject: async (setting) => ({ ...(await onNewProject(setting)), body: { name: 'renamed' } }),
  deleteProject: onNewProject,
  getAgentCredentials: onAgentOfProject,
  putAgentCredentials: async (setting) => ({ ...(await onAgentOfProject(setting)), body: { apiKey: 'swept-key' } }),
  deleteAgentCredentials: async (setting) => {
    const { params } = await onAgentOfProject(setting);
    await setting.api.db
      .insertInto('agent_credential')
      .values({
        id: `${params.projectId}:${params.agent}`,
        project_id: params.projectId,
        agent: params.agent,
        endpoint: 'https://api.openai.test',
        key_sealed: Buffer.from('swept'),
      })
      .execute();
    return { params };
  },
  createAgentSession: onReady,
  listAgentSessions: nothing,
  getAgentSession: onAgentSession(),
  recoverAgentSession: onAgentSession(),
  sendAgentMessage: async (setting) => ({ ...(await onAgentSession()(setting)), body: { text: 'swept' } }),
  getAgentOutput: onAgentSession(),
  listAgentTurns: onAgentSession(withTurn),
  answerAgentPrompt: async (setting) => ({
    ...(await onAgentSession(withPrompt)(setting)),
    body: { requestId: 1, decision: 'accept' },
  }),
  interruptAgentTurn: onAgentSession(withTurn),
  updateUsageGuardrails: ({ api, org }) => ({
    params: { orgId: org.orgId },
    body: { sandboxMachineHourLimit: 1_000_000, sandboxOverageEnabled: true },
    undo: async () => {
      const none = { machine_hour_limit: null, overage_enabled: false };
      await api.db.updateTable('subscription').set(none).where('org_id', '=', org.orgId).execute();
    },
  }),
  updateProjectUsageGuardrails: async (setting) => ({
    ...(await onNewProject(setting)),
    body: { sandboxMachineHourLimit: 1_000_000 },
  }),
  listSandboxes: inOrg,
  countSandboxes: inOrg,
  createSandbox: (setting) => ({ ...inOrg(setting), body: { agent: 'agent_one', projectId: setting.org.projectId } }),
  getSandbox: onReady,
  execInSandbox: async (setting) => ({ ...(await onReady(setting)), body: { command: 'true' } }),
  startProcess: async (setting) => ({ ...(await onReady(setting)), body: { command: 'true' } }),
  listProcesses: onReady,
  getProcess: onProcess,
  readProcessOutput: onProcess,
  followProcessOutput: onProcess,
  writeProcessInput: async (setting) => ({ ...(await onProcess(setting)), body: { data: 'swept' } }),
  signalProcess: async (setting) => ({ ...(await onProcess(setting)), body: {} }),
  resizeProcess: async (setting) => ({ ...(await onProcess(setting)), body: { cols: 80, rows: 24 } }),
  removeProcess: onProcess,
  getSshAccess: onReady,
  tunnelToSandbox: onReady,
  terminalInSandbox: onReady,
  createPreview: async (setting) => ({ ...(await onReady(setting)), body: { port: 3_000 } }),
  listPreviews: onReady,
  revokePreview: onPreview,
  listFiles: onReady,
  snapshotFiles: onReady,
  statFile: onReady,
  watchFiles: onReady,
  readFile: onReady,
  writeFile: async (setting) => ({ ...(await onReady(setting)), body: { path: 'swept', content: '' } }),
  deleteFile: onReady,
  moveFile: async (setting) => ({ ...(await onReady(setting)), body: { from: 'swept', to: 'moved' } }),
  setFileMode: async (setting) => ({ ...(await onReady(setting)), body: { path: 'swept', mode: '644' } }),
  createFolder: async (setting) => ({ ...(await onReady(setting)), body: { path: 'swept' } }),
  downloadFile: onReady,
  uploadFile: async (setting) => ({ ...(await onReady(setting)), rawBody: 'swept' }),
  createFileLink: async (setting) => ({ ...(await onReady(setting)), body: { path: 'swept', action: 'read' } }),
  sleepSandbox: onReady,
  stopSandbox: onReady,
  wakeSandbox: onSandbox('stopped'),
  resumeSandbox: onSandbox('stopped'),
  resizeSandbox: async (setting) => ({ ...(await onReady(setting)), body: { memoryGb: 2 } }),
  setEgress: async (setting) => ({ ...(await onReady(setting)), body: { mode: 'none' } }),
  updateSandbox: async (setting) => ({ ...(await onReady(setting)), body: { name: 'other name' } }),
  listVariables: async (setting) => {
    const prepared = await onReady(setting);
    const { sandboxId } = prepared.params;
    const row = { id: sandboxId, sandbox_id: sandboxId, name: 'DATABASE_URL', value_sealed: Buffer.of(0), bytes: 1 };
    await setting.api.db.insertInto('sandbox_variable').values(row).execute();
    return prepared;
  },
  replaceVariables: async (setting) => ({ ...(await onReady(setting)), body: { variables: { SWEPT: 'swept' } } }),
  updateVariables: async (setting) => ({ ...(await onReady(setting)), body: { variables: { SWEPT: 'swept' } } }),
  renewSandbox: onSandbox('ready', ephemeral),
  getLiveMetrics: onReady,
  getMetricsHistory: onReady,
  getDiagnostics: async (setting) => {
    const { failure } = getDiagnostics.example.answer.diagnostics;
    const { code, message } = failure;
    const prepared = await onSandbox('failed', () => ({
      status_reason_code: code,
      status_reason_message: message,
      wakes_from: 'disk',
    }))(setting);
    const { orgId, projectId } = setting.org;
    const actor = { kind: 'system', id: null, userId: null } as const;
    const entry = { orgId, projectId, ...prepared.params, actor, kind: 'sandbox_failed' } as const;
    await insertActivity(setting.api.db, { ...entry, details: { reason: { code, message } } });
    return prepared;
  },
  sampleMetrics: onReady,
  destroySandbox: async (setting) => ({ ...(await onReady(setting)), body: {} }),
};

/** For routes that require a query. */
const QUERIES: { readonly [name in RouteName]?: string } = {
  statFile: '?path=swept',
  readFile: '?path=swept',
  deleteFile: '?path=swept',
  downloadFile: '?path=swept',
  uploadFile: '?path=swept',
};

/** Makes the state that a request of the route needs, and the request. */
export async function prepareRequest(route: Route, setting: Setting): Promise<PreparedRequest> {
  const recipe = (RECIPES as { readonly [name: string]: AnyRecipe | undefined })[route.name];
  assert.ok(recipe !== undefined, `route-requests.ts does not say how ${route.name} is asked`);
  return await recipe(setting);
}

/** The route's path with the parameters in it, as they are, and with the query that it needs. */
export function filledPath(route: Route, params: Readonly<Record<string, string>>): string {
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name];
    assert.ok(value !== undefined, `nothing to fill {${name}} of ${route.path} with`);
    return value;
  });
  return path + (QUERIES[route.name as RouteName] ?? '');
}

/**
 * Options of `call` for a request. Does not wait for transitions: without durable work they never
 * end.
 */
export function callOptionsOf({ body, rawBody }: PreparedRequest): CallOptions {
  return {
    ...(body === undefined ? {} : { body }),
    ...(rawBody === undefined ? {} : { rawBody }),
    headers: { prefer: 'respond-async' },
  };
}
