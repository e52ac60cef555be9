// Control plane for tests: real PostgreSQL, real HTTP on loopback, the real services, stand-in
// hosts. `call` validates every response against the contract: successes against the route's
// schema, failures against the envelope and the route's errors.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ERRORS, errorEnvelope, type ErrorCode } from '@berth/contract/route/errors.ts';
import type { Method, Route } from '@berth/contract/route/route.ts';
import { errorsOf } from '@berth/contract/route/route.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import type { Role } from '@berth/contract/route/permissions.ts';
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';
import type { SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import type { FastifyInstance } from 'fastify';
import { pino, type Level } from 'pino';
import type { OidcConfig } from '../../src/config/config.ts';
import type { CallControlOptions } from '../../src/call/control.ts';
import { openControlPlane, type Services } from '../../src/control-plane/control-plane.ts';
import { openServer, type ServerBounds } from '../../src/control-plane/server.ts';
import { listen } from '../../src/http/app.ts';
import { planCatalogueOf } from '../../src/rules/billing/plan-catalogue.ts';
import { mintApiKey } from '../../src/services/access/api-keys.ts';
import { bootstrap } from '../../src/services/people/bootstrap.ts';
import type { PaymentProvider } from '../../src/services/context/payment-port.ts';
import { newToken, tokenKind, tokenSha256 } from '../../src/services/access/bearer-token.ts';
import type { LifecycleQueue, LifecycleStep, LifecycleStepKind } from '../../src/services/context/lifecycle-port.ts';
import { recordInvitationSent, prepareInvitationMail } from '../../src/services/orgs/invitation-mail.ts';
import type { MailMessage, Mailer } from '../../src/services/context/mail-port.ts';
import { SecretKey } from '../../src/services/context/secret-key.ts';
import type { Settings } from '../../src/services/context/settings.ts';
import { upsertHost } from '../../src/store/hosts/hosts.ts';
import { insertMembership, insertOrg, insertUser } from '../../src/store/people/identity.ts';
import { newId } from '../../src/store/database/ids.ts';
import { insertProject } from '../../src/store/orgs/projects.ts';
import { insertSandbox } from '../../src/store/sandboxes/sandboxes.ts';
import { insertSessionToken } from '../../src/store/access/session-tokens.ts';
import type { Database, NewSandbox, SandboxRow } from '../../src/store/database/schema.ts';
import { insertSubscription } from '../../src/store/billing/subscriptions.ts';
import { SecretsScan } from './secrets-scan.ts';
import { SETTINGS } from './settings.ts';
import { parseBody, type Answer, type CallOptions } from './answer.ts';
import { callDirectly } from './direct-call.ts';
import { AgentGuests } from './guests/agent-guests.ts';
import { startPostgres, type TestPostgres } from './database.ts';
import { startExecFront, type ExecFront } from './guests/exec-front.ts';
import { requestWebSocket } from './websocket-client.ts';
import { PAYMENTS_STAND_IN, SOLD_PLAN } from './payments-stand-in.ts';
import { HostStandIn } from './host-stand-in.ts';

export type { Answer, CallOptions };

/** Org with an owner's key, as created by the bootstrap. */
export interface TestOrg {
  orgId: string;
  projectId: string;
  userId: string;
  token: string;
}

export interface TestSession {
  userId: string;
  email: string;
  loginId: string;
  token: string;
}

export interface TestApi extends TestOrg, Services {
  url: string;
  databaseUrl: string;
  app: FastifyInstance;
  db: Database;
  host: HostStandIn;
  front: ExecFront;
  /** Guests behind `front`. */
  agents: AgentGuests;
  /** Steps that services enqueued; only without durable work. */
  steps: { kind: LifecycleStepKind; step: LifecycleStep }[];
  /** Error codes seen by `call`, for sweeps. */
  call(this: void, method: Method | 'HEAD' | 'OPTIONS', path: string, options?: CallOptions): Promise<Answer>;
  /** Like `call`, without HTTP. */
  callDirectly(this: void, method: Method, path: string, options?: CallOptions): Promise<Answer>;
  /**
   * Records a secret, as `call` does with tokens. On close the API asserts that it is in no log,
   * database or process list.
   */
  secret(text: string, what?: string): string;
  /** Scans for recorded secrets now. */
  scanSecrets(): Promise<void>;
  /** Returns the whole log, at every level. */
  logged(): string;
  /** Creates another org with its own owner and key. */
  makeOrg(): Promise<TestOrg>;
  /** Signs in a new user with the role in the first org; null for no org. */
  makeSession(options: { role: Role | null; emailVerified?: boolean; minutes?: number }): Promise<TestSession>;
  /** Sent mails, oldest first. */
  mails: MailMessage[];
  /** TXT records by name, as DNS returns them. */
  txtRecords: Map<string, string[]>;
  /**
   * Mails the invitations whose steps were recorded; only without durable work, which mails them
   * itself.
   */
  mailInvitations(): Promise<void>;
  /** Creates a key of the first org whose creator has the role. */
  makeKey(options: { role?: Role; scopes?: string[] | null; expiresInDays?: number | null }): Promise<string>;
  /** Inserts a sandbox row in the status, without a VM. */
  makeSandbox(status: SandboxStatus, changes?: Partial<NewSandbox>): Promise<SandboxRow>;
  close(): Promise<void>;
}

export interface TestApiOptions {
  /** Runs the real durable work against the stand-in host; otherwise steps are only recorded. */
  durable: boolean;
  now?: CallControlOptions['now'];
  bounds?: ServerBounds;
  /** Payment provider, null for none; by default one without payments. */
  payments?: PaymentProvider | null;
  /**
   * Plans in the catalogue beside the self-hosted one, which every org of the tests has, and one
   * that can be bought.
   */
  plans?: Plan[];
  settings?: Partial<Settings>;
  /** Prepares the migrated database before the API opens it. */
  prepareDatabase?: (databaseUrl: string) => Promise<void>;
  /** OIDC provider of the sign-in. */
  oidc?: OidcConfig;
}

export async function startApi(options: TestApiOptions): Promise<TestApi> {
  const postgres = await startPostgres();
  try {
    return await startOn(postgres, options);
  } catch (error) {
    // A remaining server would block the end of the test run.
    await postgres.stop();
    throw error;
  }
}

async function startOn(postgres: TestPostgres, options: TestApiOptions): Promise<TestApi> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-api-'));
  const databaseUrl = await postgres.createMigratedDatabase();
  await options.prepareDatabase?.(databaseUrl);
  const host = new HostStandIn(join(folder, 'behind.sock'));
  await host.start();
  const front = await startExecFront(join(folder, 'host.sock'), join(folder, 'behind.sock'));
  const agents = new AgentGuests();
  front.agents = (call, gone) => agents.answer(call, gone);
  const scan = new SecretsScan();
  // Without the log's redaction: secrets must not reach it.
  const log = pino({ level: 'trace' }, scan.into(process.env['BERTH_TEST_LOG'] as Level | undefined));
  const txtRecords = new Map<string, string[]>();
  const mails: MailMessage[] = [];
  const mailer: Mailer = { send: (message) => Promise.resolve(void mails.push(message)) };
  const settings = { ...SETTINGS, ...options.settings };
  const steps: TestApi['steps'] = [];
  const invitationsToMail: string[] = [];
  const noting: LifecycleQueue = {
    enqueue: (_trx, kind, step) => Promise.resolve(void steps.push({ kind, step })),
    enqueueInvitationMail: (_trx, invitationId) => Promise.resolve(void invitationsToMail.push(invitationId)),
    started: () => undefined,
  };
  const controlPlane = await openControlPlane(
    {
      databaseUrl,
      databaseConnections: 20,
      hostUrl: front.url,
      hostToken: host.token,
      plans: planCatalogueOf([SOLD_PLAN, ...(options.plans ?? [])]),
      settings,
      secretKey: new SecretKey(randomBytes(32)),
      oidc: options.oidc ?? null,
    },
    log,
    {
      mailer,
      findTxtRecords: (name) => Promise.resolve(txtRecords.get(name) ?? []),
      payments: options.payments === undefined ? PAYMENTS_STAND_IN : options.payments,
      lifecycle: options.durable ? undefined : noting,
      now: options.now,
      onAnswer: (route, answer) => void route.response.body.parse(answer),
    },
  );
  const { context } = controlPlane;
  const { db } = context;
  const first = await bootstrap(db, {
    ownerEmail: 'owner@example.test',
    ownerName: 'Olive Owner',
    orgName: 'First org',
    projectName: 'First project',
    keyName: 'operator',
  });
  assert.ok(first.created);

  if (!options.durable) {
    await upsertHost(db, {
      id: host.hostId,
      url: front.url,
      startId: '1',
      driver: 'fake',
      accelerator: 'none',
      capacity: { vcpu: 4_000, memoryMib: 4_000_000, diskGib: 400_000 },
      reserved: { vcpu: 0, memoryMib: 0, diskGib: 0 },
    });
    // Nothing polls the host here, and a test file may run longer than a silent host is trusted.
    await db
      .updateTable('host')
      .set({ last_seen_at: new Date(Date.now() + 86_400_000) })
      .execute();
  }
  const app = await openServer(controlPlane, options.bounds);
  const { port } = await listen(app, '127.0.0.1', 0);
  const url = `http://127.0.0.1:${port}`;
  const own: TestOrg = { orgId: first.orgId, projectId: first.projectId, userId: first.userId, token: first.token };

  return {
    ...own,
    url,
    databaseUrl,
    app,
    ...controlPlane,
    db,
    host,
    front,
    agents,
    steps,
    call: (method, path, given = {}) => call(url, method, path, { token: own.token, ...given }, scan),
    callDirectly: async (method, path, given = {}) => {
      const callOptions = { token: own.token, ...given };
      noteToken(scan, method, path, callOptions);
      return checked(method, path, callOptions, await callDirectly(controlPlane.calls, method, path, callOptions));
    },
    secret: (text, what = 'a secret of the test') => scan.note(text, what),
    scanSecrets: () => scan.check(databaseUrl),
    logged: () => scan.logged(),
    makeOrg: () => makeOrg(db),
    mails,
    txtRecords,
    mailInvitations: async () => {
      for (const id of invitationsToMail.splice(0)) {
        const prepared = await db.transaction().execute((trx) => prepareInvitationMail(trx, settings.publicUrl, id));
        if (prepared === null) continue;
        await mailer.send(prepared.message);
        await db.transaction().execute((trx) => recordInvitationSent(trx, id, prepared.tokenSha256));
      }
    },
    makeSession: (session) => makeSession(db, own.orgId, session),
    makeKey: async ({ role, scopes = null, expiresInDays = null }) => {
      let createdBy = own.userId;
      if (role !== undefined) {
        createdBy = newId('user');
        await insertUser(db, { id: createdBy, name: role, email: `${createdBy}@example.test` });
        await insertMembership(db, { orgId: own.orgId, userId: createdBy, role });
      }
      return (await mintApiKey(db, { orgId: own.orgId, createdBy, name: 'test', scopes, expiresInDays })).token;
    },
    makeSandbox: (status, changed = {}) => makeSandbox(db, own, host.hostId, status, changed),
    close: async () => {
      try {
        try {
          app.server.closeAllConnections();
          await app.close();
        } finally {
          await controlPlane.close();
        }
        await scan.check(databaseUrl);
      } finally {
        await front.stop();
        await host.stop();
        await postgres.stop();
        await rm(folder, { recursive: true, force: true });
      }
    },
  };
}

async function call(
  url: string,
  method: Method | 'HEAD' | 'OPTIONS',
  path: string,
  options: CallOptions,
  scan: SecretsScan,
): Promise<Answer> {
  noteToken(scan, method, path, options);
  const route = routeOf(method, path);
  if (route?.websocket === true) return await callWebSocket(url, route, path, options);
  const payload = options.rawBody ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(typeof options.token === 'string' ? { authorization: `Bearer ${options.token}` } : {}),
      ...(payload === undefined
        ? {}
        : { 'content-type': route?.upload === true ? 'application/octet-stream' : 'application/json' }),
      ...options.headers,
    },
    ...(payload === undefined ? {} : { body: payload }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const { status, headers } = response;
  const text = await response.text();
  return checked(method, path, options, { status, headers, body: parseBody(headers, text) });
}

function noteToken(scan: SecretsScan, method: string, path: string, { token }: CallOptions): void {
  if (typeof token === 'string' && tokenKind(token) !== null) scan.note(token, `a token of ${method} ${path}`);
}

/** Validates a response against the contract. */
function checked(method: string, path: string, { token }: CallOptions, answer: Answer): Answer {
  const { status, headers, body } = answer;
  const route = routeOf(method, path);
  if (token) assert.ok(!(JSON.stringify(body) ?? '').includes(token), 'an answer holds the token of its request');
  assert.match(headers.get('x-request-id') ?? '', /^req_[0-9a-f]{32}$/);
  if (method !== 'HEAD') {
    if (status < 300) assertSuccess(route, status, body);
    else assertFailure(route, status, body);
  }
  return answer;
}

/** Returns the link's token from a mail. */
export function tokenIn(message: Pick<MailMessage, 'text'> | undefined): string {
  const token = /\?token=([\w-]+)$/m.exec(message?.text ?? '')?.[1];
  assert.ok(token !== undefined, 'no mail with a link');
  return token;
}

/** Requests a WebSocket and disconnects once it is open. */
async function callWebSocket(url: string, route: Route, path: string, options: CallOptions): Promise<Answer> {
  const authorization = typeof options.token === 'string' ? { authorization: `Bearer ${options.token}` } : {};
  const answer = await requestWebSocket(url + path, { ...authorization, ...options.headers });
  const headers = new Headers(Object.entries(answer.headers).map(([name, value]) => [name, String(value)]));
  if ('socket' in answer) answer.socket.terminate();
  const body: unknown = 'socket' in answer ? undefined : JSON.parse(answer.text);
  return checked(route.method, path, options, { status: answer.status, headers, body });
}

/** The contract's route for a method and a path. */
export function routeOf(method: string, path: string): Route | undefined {
  const bare = path.split('?', 1)[0] ?? '';
  return ROUTES.find(
    (route) => route.method === method && new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(bare),
  );
}

function assertSuccess(route: Route | undefined, status: number, body: unknown): void {
  assert.ok(route !== undefined, 'a success on a path that the contract does not have');
  const partial = route.ranges === true && status === 206;
  assert.equal(status, partial ? 206 : route.response.status);
  route.response.body.parse(body);
}

function assertFailure(route: Route | undefined, status: number, body: unknown): void {
  const { error } = errorEnvelope.parse(body);
  assert.equal(status, ERRORS[error.code].status, `${error.code} came with ${status}`);
  const possible: ReadonlySet<ErrorCode> =
    route === undefined
      ? new Set<ErrorCode>(['route_not_found', 'method_not_allowed', 'invalid_request', 'unsupported_media_type'])
      : errorsOf(route);
  assert.ok(possible.has(error.code), `${error.code} is not among the errors of ${route?.name ?? 'an unknown path'}`);
}

async function makeOrg(db: Database): Promise<TestOrg> {
  const userId = newId('user');
  const orgId = newId('org');
  const projectId = newId('project');
  await insertUser(db, { id: userId, name: 'Other', email: `${userId}@example.test` });
  await insertOrg(db, { id: orgId, name: 'Other org' });
  await insertMembership(db, { orgId, userId, role: 'owner' });
  await insertSubscription(db, { orgId, plan: SELF_HOSTED_PLAN.id });
  await insertProject(db, {
    id: projectId,
    org_id: orgId,
    name: 'Other project',
    use_case: 'internal',
    created_by: userId,
  });
  const { token } = await mintApiKey(db, {
    orgId,
    createdBy: userId,
    name: 'other',
    scopes: null,
    expiresInDays: null,
  });
  return { orgId, projectId, userId, token };
}

async function makeSession(
  db: Database,
  orgId: string,
  { role, emailVerified = true, minutes = 60 }: { role: Role | null; emailVerified?: boolean; minutes?: number },
): Promise<TestSession> {
  const userId = newId('user');
  const email = `${userId}@example.test`;
  await insertUser(db, { id: userId, name: role ?? 'nobody', email });
  if (emailVerified) await db.updateTable('user').set({ emailVerified }).where('id', '=', userId).execute();
  if (role !== null) await insertMembership(db, { orgId, userId, role });
  const { loginId, token } = await signInAs(db, userId, minutes);
  return { userId, email, loginId, token };
}

/** Creates a login of the user with an access token. */
export async function signInAs(
  db: Database,
  userId: string,
  minutes = 60,
): Promise<{ loginId: string; token: string }> {
  const loginId = newId('signIn');
  const token = newToken('session');
  await db
    .insertInto('session')
    .values({
      id: loginId,
      userId,
      token: randomBytes(24).toString('hex'),
      expiresAt: new Date(Date.now() + 86_400_000),
      updatedAt: new Date(),
      ipAddress: null,
      userAgent: null,
    })
    .execute();
  await insertSessionToken(db, { loginId, userId, tokenSha256: tokenSha256(token), minutes });
  return { loginId, token };
}

async function makeSandbox(
  db: Database,
  org: TestOrg,
  hostId: string,
  status: SandboxStatus,
  changed: Partial<NewSandbox>,
): Promise<SandboxRow> {
  return await insertSandbox(db, {
    id: newId('sandbox'),
    org_id: org.orgId,
    project_id: org.projectId,
    host_id: hostId,
    created_by: org.userId,
    name: 'made by a test',
    agent: 'agent_one',
    status,
    ...(status === 'failed' ? { status_reason_code: 'create_failed', status_reason_message: 'made so by a test' } : {}),
    ...(status === 'stopped' || status === 'waking' ? { wakes_from: 'snapshot' as const } : {}),
    epoch: 1,
    profile: 'agent-small',
    persistence_policy: 'sleep_resume',
    mode: 'persistent',
    metadata: '{}',
    allocated_vcpu: 1,
    allocated_memory_gb: 1,
    allocated_disk_gb: 10,
    ...(status === 'deleted' ? { deleted_at: new Date() } : {}),
    ...changed,
  });
}
