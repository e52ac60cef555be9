// Control plane for benchmarks: its server on a real Postgres, without a host. Logs to a file.
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pool } from 'pg';
import { openControlPlane } from '@berth/api/control-plane/control-plane.ts';
import { openServer } from '@berth/api/control-plane/server.ts';
import { listen } from '@berth/api/http/app.ts';
import { logInto, openLog } from '@berth/api/log.ts';
import { planCatalogueOf } from '@berth/api/rules/billing/plan-catalogue.ts';
import { mintApiKey } from '@berth/api/services/access/api-keys.ts';
import { bootstrap } from '@berth/api/services/people/bootstrap.ts';
import type { ServiceContext } from '@berth/api/services/context/context.ts';
import { SecretKey } from '@berth/api/services/context/secret-key.ts';
import { openDatabase } from '@berth/api/store/database/database.ts';
import { insertMembership, insertOrg } from '@berth/api/store/people/identity.ts';
import { newId } from '@berth/api/store/database/ids.ts';
import { migrate } from '@berth/api/store/database/migrate.ts';
import { insertProject } from '@berth/api/store/orgs/projects.ts';
import type { Database } from '@berth/api/store/database/schema.ts';
import { insertSubscription } from '@berth/api/store/billing/subscriptions.ts';
import { startPostgres } from '../../api/test/world/database.ts';
import { SETTINGS } from '../../api/test/world/settings.ts';

export const POOL_CONNECTIONS = 20;

export interface BenchOrg {
  orgId: string;
  projectId: string;
  userId: string;
  token: string;
}

interface BenchControlPlane {
  context: ServiceContext;
  db: Database;
  pool: Pool;
  /** For statements that exceed a request's timeout. */
  openPatiently(): { db: Database; close(): Promise<void> };
  first: BenchOrg;
  /** Creates another org of the same owner. */
  makeOrg(): Promise<BenchOrg>;
  databaseUrl: string;
  /** Serves the API on loopback; resolves with the port. */
  serve(): Promise<number>;
  postgresVersion: string;
  close(): Promise<void>;
}

/** Starts everything but the server. */
export async function openBenchControlPlane(): Promise<BenchControlPlane> {
  const postgres = await startPostgres();
  const folder = await mkdtemp(join(tmpdir(), 'berth-bench-api-'));
  const databaseUrl = await postgres.createDatabase();
  await migrate(databaseUrl);
  const log = openLog('info', logInto(join(folder, 'api.log')));
  const nothing = (): Promise<never> => Promise.reject(new Error('the benchmark starts no steps'));
  const controlPlane = await openControlPlane(
    {
      databaseUrl,
      databaseConnections: POOL_CONNECTIONS,
      hostUrl: 'http://127.0.0.1:9',
      hostToken: randomBytes(16).toString('hex'),
      plans: planCatalogueOf(),
      settings: SETTINGS,
      secretKey: new SecretKey(randomBytes(32)),
    },
    log,
    {
      mailer: { send: () => Promise.reject(new Error('the benchmark mails nothing')) },
      lifecycle: {
        enqueue: nothing,
        enqueueInvitationMail: nothing,
        started: () => undefined,
      },
    },
  );
  const { context, pool } = controlPlane;
  const { db } = context;
  const made = await bootstrap(db, {
    ownerEmail: 'owner@example.test',
    ownerName: 'Owner',
    orgName: 'Org',
    projectName: 'Project',
    keyName: 'key',
  });
  if (!made.created) throw new Error('the database was not empty');
  const first: BenchOrg = { orgId: made.orgId, projectId: made.projectId, userId: made.userId, token: made.token };
  const app = await openServer(controlPlane);
  const { rows } = await pool.query<{ server_version: string }>('show server_version');
  return {
    context,
    db,
    pool,
    openPatiently: () => {
      const opened = openDatabase({
        url: databaseUrl,
        maxConnections: 1,
        statementTimeoutMs: null,
        onIdleError: (error) => log.warn({ err: error }),
      });
      return { db: opened.db, close: () => opened.db.destroy() };
    },
    first,
    databaseUrl,
    makeOrg: () => makeOrg(db, first.userId),
    serve: async () => (await listen(app, '127.0.0.1', 0)).port,
    postgresVersion: rows[0]?.server_version ?? 'unknown',
    close: async () => {
      await app.close();
      await controlPlane.close();
      await postgres.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function makeOrg(db: Database, userId: string): Promise<BenchOrg> {
  const orgId = newId('org');
  const projectId = newId('project');
  await insertOrg(db, { id: orgId, name: 'Another org' });
  await insertMembership(db, { orgId, userId, role: 'owner' });
  await insertSubscription(db, { orgId, plan: 'self-hosted' });
  await insertProject(db, { id: projectId, org_id: orgId, name: 'Project', use_case: 'internal', created_by: userId });
  const { token } = await mintApiKey(db, { orgId, createdBy: userId, name: 'key', scopes: null, expiresInDays: null });
  return { orgId, projectId, userId, token };
}
