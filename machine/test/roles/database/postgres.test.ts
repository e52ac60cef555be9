import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { isSame } from '@berth/os/process-identity.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { startPostgres } from '../../../src/roles/database/postgres.ts';
import { findServiceUser } from '../../../src/supervisor/service-user.ts';
import type { ServiceUser } from '../../../src/supervisor/service-user.ts';

let user: ServiceUser;
let root: string;
let folders = 0;

before(async () => {
  user = await findServiceUser();
  // Only root can enter this folder: the service must reach its files through binds.
  root = await mkdtemp(join(tmpdir(), 'berth-postgres-'));
});
after(() => rm(root, { recursive: true, force: true }));

function newFolder(): string {
  return join(root, String((folders += 1)));
}

async function query(databaseUrl: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new Client(databaseUrl);
  await client.connect();
  try {
    return (await client.query(sql)).rows as Record<string, unknown>[];
  } finally {
    await client.end();
  }
}

test('a new cluster has checksums, UTF8 and C collation, a socket only and the unprivileged user', async () => {
  const server = await startPostgres({ folder: newFolder(), user });
  try {
    const [row] = await query(
      server.databaseUrl,
      `select current_database() as database, current_setting('data_checksums') as checksums,
          current_setting('server_encoding') as encoding, current_setting('listen_addresses') as listen,
          (select datcollate from pg_database where datname = current_database()) as collation`,
    );
    assert.deepEqual(row, { database: 'berth', checksums: 'on', encoding: 'UTF8', listen: '', collation: 'C' });
    const status = await readFile(`/proc/${server.process.pid}/status`, 'utf8');
    assert.match(status, new RegExp(`^Uid:\\s${user.uid}\\s${user.uid}\\s`, 'm'));
    assert.match(status, /^CapEff:\s0+$/m);
    assert.match(status, /^CapBnd:\s0+$/m);
    assert.match(status, /^NoNewPrivs:\s1$/m);
  } finally {
    await server.stop();
  }
  assert.equal(await server.exited, 'exit code 0');
});

test('a killed server restarts with every committed row and no uncommitted one', async () => {
  const folder = newFolder();
  const first = await startPostgres({ folder, user });
  await query(first.databaseUrl, 'create table kept (n int)');
  await query(first.databaseUrl, 'insert into kept select generate_series(1, 1000)');
  const open = new Client(first.databaseUrl);
  open.on('error', () => undefined);
  await open.connect();
  await open.query('begin');
  await open.query('insert into kept values (0)');
  process.kill(first.process.pid, 'SIGKILL');
  assert.equal(await first.exited, 'signal SIGKILL');
  const second = await startPostgres({ folder, user });
  try {
    assert.equal(second.adopted, false);
    assert.deepEqual(await query(second.databaseUrl, 'select count(*)::int as count, min(n) as least from kept'), [
      { count: 1000, least: 1 },
    ]);
  } finally {
    await second.stop();
  }
});

test('a running server is adopted rather than started twice, and can be stopped', async () => {
  const folder = newFolder();
  const first = await startPostgres({ folder, user });
  const second = await startPostgres({ folder, user });
  assert.equal(second.adopted, true);
  assert.deepEqual(second.process, first.process);
  assert.deepEqual(await query(second.databaseUrl, 'select 1 as one'), [{ one: 1 }]);
  await second.stop();
  assert.equal(await first.exited, 'exit code 0');
  assert.equal(await isSame(first.process), false);
});

test('a server exits with its parent process, and the next start finds its rows', async () => {
  const folder = newFolder();
  const postgres = new URL('../../../src/roles/database/postgres.ts', import.meta.url).href;
  const script = `
    import { startPostgres } from ${JSON.stringify(postgres)};
    const server = await startPostgres(${JSON.stringify({ folder, user })});
    process.stdout.write(JSON.stringify(server.process) + '\\n');
    setInterval(() => {}, 1000);`;
  const starter = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const line = await new Promise<string>((resolve) =>
    starter.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString())),
  );
  const server = JSON.parse(line) as ProcessIdentity;
  assert.equal(await isSame(server), true);
  starter.kill('SIGKILL');
  const signal = AbortSignal.timeout(20_000);
  while (await isSame(server)) await delay(10, undefined, { signal });

  const next = await startPostgres({ folder, user });
  assert.deepEqual(await query(next.databaseUrl, 'select 1 as one'), [{ one: 1 }]);
  await next.stop();
});

test('a folder path too long for a unix socket is refused with the reason', async () => {
  await assert.rejects(startPostgres({ folder: join(root, 'x'.repeat(100)), user }), /too long for a unix socket/);
});

test('a cluster owned by another user is refused by name', async () => {
  const folder = newFolder();
  await (await startPostgres({ folder, user })).stop();
  await assert.rejects(
    startPostgres({ folder, user: { name: 'nobody', uid: 65_534, gid: 65_534 } }),
    /belongs to uid \d+, not to nobody/,
  );
});
