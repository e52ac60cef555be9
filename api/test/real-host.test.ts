// The control plane as a process with the real host daemon and its fake driver: a real guest daemon
// runs real commands without a VM.
import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { execResult } from '@berth/contract/commands/exec.ts';
import { startPostgres, type TestPostgres } from './world/database.ts';
import { deadlineOf } from '../../os/test/until.ts';

const run = promisify(execFile);
const program = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const API = program('api/src/main.ts');
const HOST = program('host/src/main.ts');

let postgres: TestPostgres;
let folder: string;
const children: ChildProcess[] = [];
let url: string;
let key: { token: string; orgId: string; projectId: string };

before(async () => {
  postgres = await startPostgres();
  folder = await mkdtemp(join(tmpdir(), 'berth-real-host-'));
  const tokenFile = join(folder, 'token');
  await writeFile(tokenFile, randomBytes(32).toString('base64url'), { mode: 0o600 });
  const secretKeyFile = join(folder, 'secret-key');
  await writeFile(secretKeyFile, randomBytes(32).toString('base64'), { mode: 0o600 });
  const socket = join(folder, 'host.sock');
  const base = { PATH: process.env['PATH'] ?? '' };
  const host = spawn(
    process.execPath,
    [
      HOST,
      '--driver',
      'fake',
      '--data-dir',
      join(folder, 'data'),
      '--cache-dir',
      join(folder, 'cache'),
      '--socket',
      socket,
      '--token-file',
      tokenFile,
    ],
    { env: base, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  children.unshift(host);
  await lineThat(host, (line) => line['msg'] === 'the host daemon is ready');
  const environment = {
    ...base,
    BERTH_DATABASE_URL: await postgres.createDatabase(),
    BERTH_HOST_URL: `unix:${socket}`,
    BERTH_HOST_TOKEN_FILE: tokenFile,
    BERTH_SECRET_KEY_FILE: secretKeyFile,
    BERTH_OUTBOX_FOLDER: join(folder, 'outbox'),
    BERTH_PORT: '0',
  };
  const { stdout } = await run(process.execPath, [API, 'bootstrap'], { env: environment });
  key = JSON.parse(stdout) as typeof key;
  const api = spawn(process.execPath, [API], { env: environment, stdio: ['ignore', 'pipe', 'inherit'] });
  children.unshift(api);
  const ready = await lineThat(api, (line) => line['msg'] === 'ready');
  url = `http://127.0.0.1:${String(ready['port'])}`;
});

after(async () => {
  for (const child of children) {
    if (child.exitCode !== null) continue;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  }
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Returns the first matching log line; later output is discarded. */
function lineThat(
  child: ChildProcess,
  fits: (line: Record<string, unknown>) => boolean,
): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    assert.ok(child.stdout);
    let last = '';
    child.once('exit', (code) => reject(new Error(`ended with ${code}: ${last}`)));
    createInterface({ input: child.stdout }).on('line', (text) => {
      last = text;
      const line = JSON.parse(text) as Record<string, unknown>;
      if (fits(line)) resolve(line);
    });
  });
}

async function send(
  path: string,
  body?: object,
  method = body === undefined ? 'GET' : 'POST',
): Promise<{ status: number; body: Record<string, Record<string, unknown>> }> {
  const response = await fetch(url + path, {
    method,
    headers: {
      authorization: `Bearer ${key.token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, Record<string, unknown>> };
}

test('a sandbox is created, runs successful, failing and timed-out commands, and is destroyed', async () => {
  const created = await send(`/v1/orgs/${key.orgId}/sandboxes`, { agent: 'agent_one', projectId: key.projectId });
  assert.equal(created.status, 201);
  const id = String(created.body['sandbox']?.['id']);
  let sandbox = created.body['sandbox'];
  while (sandbox?.['status'] === 'provisioning') sandbox = (await send(`/v1/sandboxes/${id}`)).body['sandbox'];
  assert.equal(sandbox?.['status'], 'ready', JSON.stringify(sandbox));

  const exec = async (command: string, timeoutSeconds?: number) =>
    execResult.parse(
      (await send(`/v1/sandboxes/${id}/exec`, { command, ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }) }))
        .body,
    );
  assert.deepEqual(await exec('printf out; printf err >&2'), {
    exitCode: 0,
    stdout: 'out',
    stderr: 'err',
    truncated: false,
    timedOut: false,
  });
  assert.equal((await exec('exit 7')).exitCode, 7);
  const late = await exec('printf before; sleep 60', 5);
  assert.deepEqual([late.exitCode, late.timedOut, late.stdout], [124, true, 'before']);
  const loud = await exec('head -c 1000000 /dev/zero | tr "\\0" x');
  assert.deepEqual([loud.truncated, loud.stdout.length], [true, 65_536]);

  const destroyed = await send(`/v1/sandboxes/${id}/destroy`, {});
  assert.equal(destroyed.status, 200);
  sandbox = destroyed.body['sandbox'];
  while (sandbox?.['status'] === 'destroying') sandbox = (await send(`/v1/sandboxes/${id}`)).body['sandbox'];
  assert.equal(sandbox?.['status'], 'deleted');
  assert.equal((await send(`/v1/sandboxes/${id}/exec`, { command: 'true' })).status, 409);
});

test('a sandbox grows live, sleeps with its processes and files, and resumes', async () => {
  const created = await send(`/v1/orgs/${key.orgId}/sandboxes`, { agent: 'agent_one', projectId: key.projectId });
  const id = String(created.body['sandbox']?.['id']);
  const settled = async (): Promise<Record<string, unknown>> => {
    for (;;) {
      const sandbox = (await send(`/v1/sandboxes/${id}`)).body['sandbox'] ?? {};
      if (['ready', 'stopped', 'failed', 'deleted'].includes(String(sandbox['status']))) return sandbox;
    }
  };
  const run = async (command: string): Promise<string> =>
    execResult.parse((await send(`/v1/sandboxes/${id}/exec`, { command })).body).stdout.trim();
  assert.equal((await settled())['status'], 'ready');
  await run('(while :; do date +%s%N > beat; sleep 0.1; done) > /dev/null 2>&1 & echo $! > pid; echo kept > file');

  assert.equal((await send(`/v1/sandboxes/${id}/resize`, { vcpu: 2, memoryGb: 2 })).status, 200);
  const deadline = Date.now() + deadlineOf(30_000);
  let grown = await settled();
  while (grown['allocated_vcpu'] !== 2) {
    assert.ok(Date.now() < deadline, JSON.stringify(grown));
    grown = await settled();
  }
  assert.deepEqual([grown['allocated_memory_gb'], grown['pendingAllocation']], [2, undefined]);

  assert.equal((await send(`/v1/sandboxes/${id}/sleep`, {})).status, 200);
  const asleep = await settled();
  assert.deepEqual([asleep['status'], asleep['wakesFrom']], ['stopped', 'snapshot']);
  assert.equal((await send(`/v1/sandboxes/${id}/exec`, { command: 'true' })).status, 409);
  assert.equal((await send(`/v1/sandboxes/${id}/wake`, {})).status, 200);
  const woken = await settled();
  assert.deepEqual([woken['status'], woken['allocated_vcpu']], ['ready', 2], JSON.stringify(woken));
  assert.equal((woken['lastWake'] as Record<string, unknown>)['from'], 'snapshot');
  assert.equal(await run('cat file; kill -0 $(cat pid) && echo alive'), 'kept\nalive');
  await send(`/v1/sandboxes/${id}/destroy`, {});
  assert.equal((await settled())['status'], 'deleted');
});

test('files are written, listed and read through all layers, concurrently with commands', async () => {
  const created = await send(`/v1/orgs/${key.orgId}/sandboxes`, { agent: 'agent_one', projectId: key.projectId });
  const id = String(created.body['sandbox']?.['id']);
  while ((await send(`/v1/sandboxes/${id}`)).body['sandbox']?.['status'] !== 'ready');
  const query = (path: string): string => `path=${encodeURIComponent(path)}`;
  const read = async (path: string): Promise<unknown> => (await send(`/v1/sandboxes/${id}/file?${query(path)}`)).body;
  const write = async (body: object): Promise<unknown> => (await send(`/v1/sandboxes/${id}/file`, body, 'PUT')).body;
  const run = async (command: string): Promise<string> =>
    execResult.parse((await send(`/v1/sandboxes/${id}/exec`, { command })).body).stdout;

  const sha256 = createHash('sha256').update('héllo\n').digest('hex');
  const written = { path: '/code/src/ü 🦭.txt', size: 7, sha256 };
  assert.deepEqual(await write({ path: 'src/ü 🦭.txt', content: 'héllo\n' }), written);
  assert.equal(await run("cat src/*; stat -c '%U %a' src/*"), 'héllo\nberth 644\n');
  const binary = randomBytes(1_000_000);
  await write({ path: '/home/berth/binary', content: binary.toString('base64'), encoding: 'base64' });
  assert.equal(await run('wc -c < ~/binary; ln -s ~/binary src/link; mkfifo src/fifo'), '1000000\n');
  assert.deepEqual(await read('src/link'), {
    path: '/code/src/link',
    content: binary.toString('base64'),
    encoding: 'base64',
    size: 1_000_000,
    sha256: createHash('sha256').update(binary).digest('hex'),
  });
  const { directories, ...listed } = (await send(`/v1/sandboxes/${id}/files/snapshot?depth=99`)).body as {
    directories: Record<string, { label: string; path: string; type: string; kind: string; size: number | null }[]>;
  };
  assert.deepEqual(listed, { path: '/code', truncated: false });
  const entries = Object.entries(directories).map(([folder, found]) => [
    folder,
    found.map(({ label, path, type, kind, size }) => [label, path, type, kind, kind === 'file' ? size : null]),
  ]);
  assert.deepEqual(Object.fromEntries(entries), {
    '/code': [['src', '/code/src', 'directory', 'directory', null]],
    '/code/src': [
      ['fifo', '/code/src/fifo', 'file', 'other', null],
      ['link', '/code/src/link', 'file', 'link', null],
      ['ü 🦭.txt', '/code/src/ü 🦭.txt', 'file', 'file', 7],
    ],
  });
  for (const [path, status, code] of [
    ['src', 400, 'not_a_file'],
    ['src/fifo', 400, 'not_a_file'],
    ['src/fifo/x', 400, 'not_a_directory'],
    ['missing', 404, 'file_not_found'],
    ['x'.repeat(256), 400, 'file_path_invalid'],
  ] as const) {
    const answer = await send(`/v1/sandboxes/${id}/file?${query(path)}`);
    assert.deepEqual([answer.status, answer.body['error']?.['code']], [status, code], path);
  }
  await send(`/v1/sandboxes/${id}/destroy`, {});
});

test("the status reason of a dead VM does not have its host's text", async () => {
  const created = await send(`/v1/orgs/${key.orgId}/sandboxes`, { agent: 'agent_one', projectId: key.projectId });
  const id = String(created.body['sandbox']?.['id']);
  const sandbox = async () => (await send(`/v1/sandboxes/${id}`)).body['sandbox'];
  while ((await sandbox())?.['status'] !== 'ready');
  const record = await readFile(join(folder, 'data', 'host', 'vms', id, 'record.json'), 'utf8');
  const { driverState } = JSON.parse(record) as { driverState: { process: { pid: number } } };
  process.kill(driverState.process.pid, 'SIGKILL');
  let failed = await sandbox();
  while (failed?.['status'] !== 'failed') failed = await sandbox();
  assert.deepEqual(failed['statusReason'], {
    code: 'process_ended',
    message: 'the process of its VM exited. Wake the sandbox if its disk remains; otherwise create another one',
  });
});
