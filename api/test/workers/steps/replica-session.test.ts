// The session of a replica while Postgres, or a proxy in front of it, breaks connections at the
// worst moments.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import pg from 'pg';
import { pino } from 'pino';
import { ReplicaSession } from '../../../src/workers/steps/replica-session.ts';
import { startPostgres, type TestPostgres } from '../../world/database.ts';
import { untilTrue } from '../../../../os/test/until.ts';

type ProxyMode = 'pass' | 'close before an answer' | 'break at the lock';

let postgres: TestPostgres;
let databaseUrl: string;
before(async () => {
  postgres = await startPostgres();
  databaseUrl = await postgres.createDatabase();
});
after(() => postgres?.stop());

let proxy: Server;
let proxyMode: ProxyMode;
/** Connections that were treated in the present manner. */
let affected: number;
let open: Set<Socket>;
let session: ReplicaSession;
/** Differs per test: the server may hold a lock slightly longer than its connection. */
let executorId: string;
beforeEach(async () => {
  [proxyMode, affected, open] = ['pass', 0, new Set()];
  executorId = randomUUID();
  const folder = new URL(databaseUrl).searchParams.get('host') ?? '';
  proxy = createServer((near) => {
    open.add(near);
    near.on('close', () => open.delete(near)).on('error', () => undefined);
    if (proxyMode === 'close before an answer') {
      near.once('data', () => {
        affected += 1;
        near.end();
      });
      return;
    }
    const far = connect(join(folder, '.s.PGSQL.5432'));
    far.on('error', () => undefined).on('close', () => near.destroy());
    near.on('close', () => far.destroy());
    near.on('data', (chunk) => {
      if (proxyMode === 'break at the lock' && chunk.includes('pg_try_advisory_lock')) {
        affected += 1;
        near.resetAndDestroy();
      } else {
        far.write(chunk);
      }
    });
    far.pipe(near);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const url = new URL(databaseUrl);
  url.search = '';
  url.host = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  session = new ReplicaSession({ databaseUrl: url.href, executorId, log: pino({ level: 'silent' }) });
});
afterEach(async () => {
  await session.close();
  for (const socket of open) socket.destroy();
  proxy.close();
  await once(proxy, 'close');
});

function becomes(next: ProxyMode): void {
  [proxyMode, affected] = [next, 0];
}

async function sessionsAtServer(): Promise<number> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ count: number }>(
      `select count(*)::int as count from pg_stat_activity
      where datname = current_database() and application_name = 'berth-api-session'`,
    );
    return rows[0]?.count ?? 0;
  } finally {
    await client.end();
  }
}

for (const how of ['close before an answer', 'break at the lock'] as const) {
  test(`connections that ${how} during a session's repair leave one session, which leads again`, async () => {
    await session.open();
    await untilTrue('it leads', () => session.isLeader('a task'));
    becomes(how);
    for (const socket of open) socket.destroy();
    await untilTrue('it was tried again', () => affected >= 3);
    assert.equal(await session.isLeader('a task'), false);
    becomes('pass');
    await untilTrue('it leads again', () => session.isLeader('a task'));
    await untilTrue('there is one session', async () => (await sessionsAtServer()) === 1);
    // A second process of this id finds its lock taken, so this session holds it.
    const other = new ReplicaSession({ databaseUrl, executorId, log: pino({ level: 'silent' }) });
    await assert.rejects(other.open(), /another process runs as executor/);
    assert.equal(await session.isLeader('a task'), true);
  });
}

test('a session closed during its repair leaves nothing at the server', async () => {
  await session.open();
  becomes('close before an answer');
  for (const socket of open) socket.destroy();
  await untilTrue('it was tried again', () => affected >= 1);
  await session.close();
  becomes('pass');
  await untilTrue('there is no session', async () => (await sessionsAtServer()) === 0);
  assert.equal(await session.isLeader('a task'), false);
});
