// What is measured: the control plane's server as main.ts wires it, with no host behind it, and beside it a bare route of the same Fastify
// options that reads one row by its key through the same pool. One process, one real Postgres, logs to a file.
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { HostClients } from '../../api/src/hosts/clients.ts';
import { buildApp, listen, newServer } from '../../api/src/http/app.ts';
import { logInto, openLog } from '../../api/src/log.ts';
import { openSignIn } from '../../api/src/sign-in/sign-in.ts';
import { planCatalogueOf } from '../../api/src/rules/plan-catalogue.ts';
import { mintApiKey } from '../../api/src/services/api-keys.ts';
import { bootstrap } from '../../api/src/services/bootstrap.ts';
import type { ServiceContext } from '../../api/src/services/context.ts';
import { SecretKey } from '../../api/src/services/secret-key.ts';
import { Callers } from '../../api/src/store/callers.ts';
import { openDatabase } from '../../api/src/store/database.ts';
import { insertMembership, insertOrg } from '../../api/src/store/identity.ts';
import { newId } from '../../api/src/store/ids.ts';
import { migrate } from '../../api/src/store/migrate.ts';
import { insertProject } from '../../api/src/store/projects.ts';
import { SandboxChanges } from '../../api/src/store/sandbox-changes.ts';
import { insertSandbox } from '../../api/src/store/sandboxes.ts';
import type { Database } from '../../api/src/store/schema.ts';
import { startPostgres } from '../../api/test/database.ts';
import { SETTINGS } from '../../api/test/settings.ts';

export const POOL_CONNECTIONS = 20;

export interface MeasuredOrg {
  orgId: string;
  token: string;
  sandboxId: string;
}

export interface ApiWorld {
  apiPort: number;
  barePort: number;
  /** The first org; its sandboxes all live. */
  live: MeasuredOrg;
  /** Another with as many live ones and many deleted. */
  withDeleted: MeasuredOrg;
  postgresVersion: string;
  close(): Promise<void>;
}

/** Starts everything; the orgs have `live` and `deleted` sandboxes. */
export async function openApiWorld({ live, deleted }: { live: number; deleted: number }): Promise<ApiWorld> {
  const postgres = await startPostgres();
  const folder = await mkdtemp(join(tmpdir(), 'berth-bench-api-'));
  const databaseUrl = await postgres.createDatabase();
  await migrate(databaseUrl);
  const log = openLog('info', logInto(join(folder, 'api.log')));
  const { db, pool } = openDatabase({
    url: databaseUrl,
    maxConnections: POOL_CONNECTIONS,
    statementTimeoutMs: 30_000,
    onIdleError: (error) => log.warn({ err: error }),
  });
  const first = await bootstrap(db, {
    ownerEmail: 'owner@example.test',
    ownerName: 'Owner',
    orgName: 'Org',
    projectName: 'Project',
    keyName: 'key',
  });
  if (!first.created) throw new Error('the database was not empty');
  const changes = new SandboxChanges(databaseUrl, (error) => log.warn({ err: error }));
  await changes.start();
  const nothing = (): Promise<never> => Promise.reject(new Error('the benchmark starts no steps'));
  const context: ServiceContext = {
    db,
    callers: new Callers(pool),
    changes,
    lifecycle: {
      enqueueProvision: nothing,
      enqueueSleep: nothing,
      enqueueWake: nothing,
      enqueueResize: nothing,
      enqueueDestroy: nothing,
      enqueueInvitationMail: nothing,
      started: () => undefined,
    },
    hosts: new HostClients(randomBytes(16).toString('hex')),
    plans: planCatalogueOf(),
    settings: SETTINGS,
    secretKey: new SecretKey(randomBytes(32)),
    mailer: { send: () => Promise.reject(new Error('the benchmark mails nothing')) },
    payments: null,
    log,
  };

  const other = await makeOrg(db, first.userId);
  const measured: MeasuredOrg[] = [];
  for (const { orgId, projectId, token, gone } of [
    { orgId: first.orgId, projectId: first.projectId, token: first.token, gone: 0 },
    { ...other, gone: deleted },
  ]) {
    measured.push({ orgId, token, sandboxId: await fill(db, { orgId, projectId, userId: first.userId, live, deleted: gone }) });
  }
  // As autovacuum would, some minutes later.
  await sql`vacuum analyze`.execute(db);
  const [liveOrg, withDeleted] = measured as [MeasuredOrg, MeasuredOrg];

  const app = await buildApp({ context, signIn: openSignIn({ ...context, oidc: null }) });
  const bare = newServer(context);
  const bareRead = (path: string, statement: { name?: string; text: string }): void => {
    bare.route({
      method: 'GET',
      url: path,
      handler: async (request) => (await pool.query({ ...statement, values: [(request.params as { id: string }).id] })).rows[0],
    });
  };
  const text = 'select * from sandbox where id = $1';
  bareRead('/sandboxes/:id', { text });
  bareRead('/prepared/:id', { name: 'read_sandbox', text });
  const { rows } = await pool.query<{ server_version: string }>('show server_version');
  return {
    apiPort: (await listen(app, '127.0.0.1', 0)).port,
    barePort: (await listen(bare, '127.0.0.1', 0)).port,
    live: liveOrg,
    withDeleted,
    postgresVersion: rows[0]?.server_version ?? 'unknown',
    close: async () => {
      await Promise.all([app.close(), bare.close()]);
      context.hosts.close();
      await changes.close();
      await db.destroy();
      await postgres.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function makeOrg(db: Database, userId: string): Promise<{ orgId: string; projectId: string; token: string }> {
  const orgId = newId('org');
  const projectId = newId('project');
  await insertOrg(db, { id: orgId, name: 'Another org' });
  await insertMembership(db, { orgId, userId, role: 'owner' });
  await insertProject(db, { id: projectId, org_id: orgId, name: 'Project', use_case: 'internal', created_by: userId });
  const { token } = await mintApiKey(db, { orgId, createdBy: userId, name: 'key', scopes: null, expiresInDays: null });
  return { orgId, projectId, token };
}

/** Gives an org its sandboxes; the deleted ones are older. Returns the id of a live one. */
async function fill(
  db: Database,
  org: { orgId: string; projectId: string; userId: string; live: number; deleted: number },
): Promise<string> {
  const { id } = await insertSandbox(db, {
    id: newId('sandbox'),
    org_id: org.orgId,
    project_id: org.projectId,
    host_id: null,
    created_by: org.userId,
    name: 'measured',
    agent: 'agent_one',
    status: 'ready',
    epoch: 1,
    profile: 'agent-small',
    persistence_policy: 'sleep_resume',
    mode: 'persistent',
    metadata: JSON.stringify({ team: 'blue', build: 7 }),
    allocated_vcpu: 1,
    allocated_memory_gb: 1,
    allocated_disk_gb: 10,
  });
  const copy = async (count: number, status: string): Promise<void> => {
    await sql`
      insert into sandbox (id, org_id, project_id, created_by, name, agent, status, epoch, profile, persistence_policy, mode, metadata,
        allocated_vcpu, allocated_memory_gb, allocated_disk_gb, created_at, deleted_at)
      select 'sbx_' || translate(substr(md5(random()::text), 1, 24), '01389', 'ghijk'), org_id, project_id, created_by, name, agent,
        ${status}, epoch, profile, persistence_policy, mode, metadata, allocated_vcpu, allocated_memory_gb, allocated_disk_gb,
        created_at - n * interval '1 second', case when ${status} = 'deleted' then now() end
      from sandbox, generate_series(1, ${count}::integer) n where id = ${id}`.execute(db);
  };
  await copy(org.live - 1, 'ready');
  await copy(org.deleted, 'deleted');
  return id;
}
