// A computer that has the role of a host runs the host daemon and nothing else.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CHECKOUT } from '../../src/config/folders.ts';
import { readConfig } from '../../src/config/config.ts';
import { Progress } from '../../src/output/progress.ts';
import { HOST, readHostInfo } from '../../src/roles/host/service.ts';
import { readInstanceRecord } from '../../src/supervisor/instance.ts';
import { startRoles, type RunningRoles } from '../../src/supervisor/start-roles.ts';
import { freePort } from '../../../protocol/test/free-port.ts';

let folder: string;
let port: number;
let running: RunningRoles<string>;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-host-role-'));
  port = await freePort();
  const flags = { dataDir: join(folder, 'data'), cacheDir: join(folder, 'cache'), port: String(port), driver: 'fake' };
  const environment = { PATH: process.env['PATH'] };
  running = await startRoles(
    {
      roles: [HOST],
      urls: { url: `unix:${folder}/data/run/host/host.sock` },
      checkout: CHECKOUT,
      config: readConfig(flags, environment),
      progress: new Progress(),
      environment,
      onEvent: () => undefined,
    },
    async ({ paths }) => paths.hostSocket,
    AbortSignal.timeout(120_000),
  );
});
after(async () => {
  await running.stop();
  await rm(folder, { recursive: true, force: true });
});

test('the host role starts a responding host daemon', async () => {
  const info = await readHostInfo(running.context.paths, AbortSignal.timeout(10_000));
  assert.equal(info?.driver, 'fake');
  assert.equal(running.result, join(folder, 'data/run/host/host.sock'));
});

test('services have the OOM score of the supervisor, below that of every VM', async () => {
  const scoreOf = (pid: number | 'self'): number => Number(readFileSync(`/proc/${pid}/oom_score_adj`, 'latin1'));
  // This process is the supervisor; it lowers its score where it may.
  assert.ok(scoreOf('self') <= 0);
  const { host } = (await readInstanceRecord(running.context.paths))?.services ?? {};
  assert.ok(host !== undefined);
  assert.equal(scoreOf(host.pid), scoreOf('self'));
});

test('the host role starts no PostgreSQL server and no API', async () => {
  const { paths } = running.context;
  assert.deepEqual(Object.keys((await readInstanceRecord(paths))?.services ?? {}), ['host']);
  assert.deepEqual(await readdir(paths.postgres), []);
  assert.deepEqual((await readdir(paths.log)).toSorted(), ['host.log', 'supervisor.log']);
  assert.equal(
    (await readdir(join(folder, 'cache'))).some((name) => name.includes('postgres')),
    false,
  );
  const socket = connect(port, '127.0.0.1');
  const outcome = await new Promise<string>((resolve) => {
    socket.once('connect', () => resolve('connected'));
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
  });
  socket.destroy();
  assert.equal(outcome, 'ECONNREFUSED');
});
