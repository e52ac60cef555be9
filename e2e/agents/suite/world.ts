// A control plane with its public API, and the real host daemon with fake VMs, its model gateway
// and scripted model servers. Agents in the guests are the real ones, or the scripted one.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { openControlPlane } from '../../../api/src/control-plane/control-plane.ts';
import { openServer } from '../../../api/src/control-plane/server.ts';
import { listen } from '../../../api/src/http/app.ts';
import { planCatalogueOf } from '../../../api/src/rules/billing/plan-catalogue.ts';
import { SecretKey } from '../../../api/src/services/context/secret-key.ts';
import { bootstrap } from '../../../api/src/services/people/bootstrap.ts';
import { signInAs } from '../../../api/test/world/api.ts';
import { startPostgres } from '../../../api/test/world/database.ts';
import { makeKeyRow } from '../../../api/test/world/people-rows.ts';
import { SecretsScan } from '../../../api/test/world/secrets-scan.ts';
import { SETTINGS } from '../../../api/test/world/settings.ts';
import { realAgent, type RealAgent } from '../../../guest/test/bridge/real-agents.ts';
import { DaemonFixture } from '../../../host/test/daemon/daemon-process.ts';
import { call, destroySandbox, listSandboxes, type Caller } from '../../world/client.ts';
import { ModelServer } from '../../model-servers/server.ts';
import { HostLink } from './host-link.ts';

interface WorldOptions {
  /** Agents in the guests; none: the scripted one takes the place of every agent. */
  agents?: Readonly<Record<string, RealAgent>>;
  /** Variables of the host daemon. */
  environment?: Readonly<Record<string, string>>;
}

export interface AgentWorld extends AsyncDisposable {
  /** The owner's API key. */
  caller: Caller;
  /** The owner's session token. */
  session: Caller;
  models: ModelServer;
  daemon: DaemonFixture;
  link: HostLink;
  /** Secrets recorded here must be in no log and no table at the end. */
  scan: SecretsScan;
  db: Awaited<ReturnType<typeof openControlPlane>>['context']['db'];
  databaseUrl: string;
  /** Another API key of the owner. */
  otherKey(): Promise<Caller>;
}

export async function startAgentWorld({ agents = {}, environment = {} }: WorldOptions = {}): Promise<AgentWorld> {
  await using stack = new AsyncDisposableStack();
  const postgres = await startPostgres();
  stack.defer(() => postgres.stop());
  const databaseUrl = await postgres.createMigratedDatabase();
  const models = await ModelServer.start();
  stack.defer(() => models.close());

  const daemon = await DaemonFixture.make(['--driver', 'fake', '--pool-max', '0']);
  stack.defer(() => daemon.remove());
  const isScripted = Object.keys(agents).length === 0;
  const given = isScripted ? { BERTH_SCRIPTED_AGENT: '1' } : { BERTH_FAKE_AGENTS: await listAgents(daemon, agents) };
  daemon.environment = { ...given, ...environment };
  await daemon.start();
  const link = await HostLink.start(join(daemon.root, 'link.sock'), join(daemon.root, 'run', 'host.sock'));
  stack.defer(() => link.close());

  const scan = new SecretsScan();
  const controlPlane = await openControlPlane(
    {
      ...{
        databaseUrl,
        databaseConnections: 10,
        plans: planCatalogueOf([]),
        secretKey: new SecretKey(randomBytes(32)),
      },
      ...{ hostUrl: `unix:${join(daemon.root, 'link.sock')}`, hostToken: daemon.token, oidc: null },
      settings: { ...SETTINGS, modelEndpoints: { openai: [models.url], anthropic: [models.url] } },
    },
    pino({ level: 'trace' }, scan.into(undefined)),
    { mailer: { send: () => Promise.resolve() } },
  );
  stack.defer(() => controlPlane.close());
  const { db } = controlPlane.context;
  const app = await openServer(controlPlane);
  stack.defer(() => app.close());
  stack.defer(() => app.server.closeAllConnections());
  const { port } = await listen(app, '127.0.0.1', 0);
  const names = { ownerEmail: 'o@example.test', ownerName: 'O', orgName: 'Org', projectName: 'P', keyName: 'k' };
  const first = await bootstrap(db, names);
  assert.ok(first.created);
  const caller = {
    ...{ url: `http://127.0.0.1:${port}`, token: first.token },
    ...{ orgId: first.orgId, projectId: first.projectId },
  };
  const session = { ...caller, token: (await signInAs(db, first.userId)).token };
  stack.defer(() => scan.check(databaseUrl));
  stack.defer(async () => {
    for (const { id } of await listSandboxes(caller)) await destroySandbox(caller, id);
  });
  for (const agent of Object.keys(agents)) {
    const key = scan.note(`sk-${randomBytes(12).toString('hex')}`, `the model key of ${agent}`);
    await storeKey(session, agent, key);
  }

  const world = stack.move();
  return {
    ...{ caller, session, models, daemon, link, scan, db, databaseUrl },
    otherKey: async () => {
      const { token } = await makeKeyRow(db, { orgId: caller.orgId, createdBy: first.userId });
      return { ...caller, token };
    },
    [Symbol.asyncDispose]: () => world.disposeAsync(),
  };
}

/** Stores a model key of the project; null deletes it. */
export async function storeKey(session: Caller, agent: string, apiKey: string | null): Promise<void> {
  const path = `/v1/orgs/${session.orgId}/projects/${session.projectId}/agent-credentials/${agent}`;
  const { status, body } = await call(
    session,
    apiKey === null ? 'DELETE' : 'PUT',
    path,
    apiKey === null ? undefined : { apiKey },
  );
  assert.equal(status, 200, JSON.stringify(body));
}

/** Writes the list of the guests' agents; returns the fake driver's setting. */
async function listAgents(daemon: DaemonFixture, agents: Readonly<Record<string, RealAgent>>): Promise<string> {
  const installed = await Promise.all(
    Object.entries(agents).map(async ([id, agent]) => ({ id, needsMib: 0, ...(await realAgent(agent)) })),
  );
  const list = join(daemon.root, 'agents.json');
  await writeFile(list, JSON.stringify({ agents: installed }), { mode: 0o644 });
  return JSON.stringify({ list, programs: installed.flatMap(({ paths }) => Object.values(paths)) });
}
