// World of durable-work tests: own PostgreSQL with one org and project, a stand-in host, and access
// to the rows.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { bootstrap } from '../../src/services/people/bootstrap.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import type { Database, SandboxRow } from '../../src/store/database/schema.ts';
import { startOwnPostgres, type OwnPostgres } from '../world/database.ts';
import { HostStandIn } from '../world/host-stand-in.ts';
import { Replica, type ReplicaOptions } from './replica.ts';

export interface World {
  postgres: OwnPostgres;
  db: Database;
  host: HostStandIn;
  replica: ReplicaOptions;
  /** Starts a replica, which the next `calm` stops. @param crashAt where it kills itself */
  start(options?: Partial<ReplicaOptions>, crashAt?: string): Promise<Replica>;
  /** Stops the replicas, and lets the host finish all work at once. */
  calm(): Promise<void>;
  /** Mail folder of the replicas. */
  outbox: string;
  /** Returns the row once `done` is true; fails with the last row after `deadlineMs`. */
  until(sandboxId: string, done: (row: SandboxRow) => boolean, deadlineMs?: number): Promise<SandboxRow>;
  /** Resolves when no durable step remains, so that no later replica takes over a test's step. */
  atRest(): Promise<void>;
  close(): Promise<void>;
}

const POLL_INTERVAL_MS = 20;

export async function openWorld(): Promise<World> {
  const postgres = await startOwnPostgres();
  const folder = await mkdtemp(join(tmpdir(), 'berth-host-'));
  const databaseUrl = await postgres.createMigratedDatabase();
  const { db } = openDatabase({
    url: databaseUrl,
    maxConnections: 5,
    statementTimeoutMs: 30_000,
    // Tests restart the server; the pool dials again at the next query.
    onIdleError: () => undefined,
  });
  const { orgId, projectId, userId } = await bootstrap(db, {
    ownerEmail: 'owner@example.test',
    ownerName: 'Owner',
    orgName: 'Org',
    projectName: 'Project',
    keyName: 'key',
  });
  if (projectId === null) throw new Error('bootstrap made no project');
  const host = new HostStandIn(join(folder, 'host.sock'));
  await host.start();
  const replica: ReplicaOptions = {
    databaseUrl,
    mail: { kind: 'outbox', folder: join(folder, 'outbox'), from: 'Berth <berth@localhost>' },
    hostUrl: host.url,
    hostToken: host.token,
    orgId,
    projectId,
    userId,
    logLevel: process.env['BERTH_TEST_LOG'] ?? 'warn',
    startAtOnce: true,
  };
  const replicas: Replica[] = [];
  return {
    postgres,
    db,
    host,
    outbox: join(folder, 'outbox'),
    replica,
    start: async (options = {}, crashAt) => {
      const started = await Replica.start({ ...replica, ...options }, crashAt);
      replicas.push(started);
      return started;
    },
    calm: async () => {
      await Promise.all(replicas.splice(0).map((one) => one.stop()));
      host.calm();
    },
    until: async (sandboxId, done, deadlineMs = 20_000) => {
      const deadline = Date.now() + deadlineMs;
      for (;;) {
        const row = await db.selectFrom('sandbox').selectAll().where('id', '=', sandboxId).executeTakeFirstOrThrow();
        if (done(row)) return row;
        if (Date.now() > deadline) throw new Error(`still ${row.status} (epoch ${row.epoch}) after ${deadlineMs} ms`);
        await delay(POLL_INTERVAL_MS);
      }
    },
    atRest: async () => {
      const deadline = Date.now() + 20_000;
      for (;;) {
        const rows = await db.selectFrom('durable_step').select('id').execute();
        if (rows.length === 0) return;
        if (Date.now() > deadline) throw new Error(`steps that do not end: ${rows.map(({ id }) => id).join(', ')}`);
        await delay(POLL_INTERVAL_MS);
      }
    },
    close: async () => {
      await db.destroy();
      await host.stop();
      await postgres.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
