// `berth secrets` beside a running `up` under requests: nothing fails, and a kill in the middle
// leaves an installation that works and can rotate again.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { request, type IncomingMessage } from 'node:http';
import { after, before, test } from 'node:test';
import { Client } from 'pg';
import { untilTrue } from '../../../os/test/until.ts';
import { socketDatabaseUrl } from '../../src/roles/database/connection.ts';
import { BERTH, TestInstance, runVerb } from './berth-program.ts';

/** Stored values are sealed again within 65 s. */
const SEALED_AGAIN_MS = 90_000;

let berth: TestInstance;
let key: string;
let sandboxId: string;
let publicLink: URL;
let visited: number | undefined;
let database: Client;

before(async () => {
  // Inherited by `up`.
  process.env['BERTH_REQUESTS_PER_MINUTE'] = process.env['BERTH_PROJECTS_PER_ORG'] = '100000';
  berth = await TestInstance.make();
  await berth.up();
  key = berth.greeted('API key');
  database = new Client(socketDatabaseUrl(`${berth.folder}/postgres/socket`));
  await database.connect();
  const made = await call('POST', `/v1/orgs/${berth.greeted('org')}/sandboxes`, {
    projectId: berth.greeted('project'),
    agent: 'agent_one',
  });
  sandboxId = (made['sandbox'] as { id: string }).id;
  await untilTrue('a command in the sandbox', async () => {
    const { status } = await berth.call('POST', `/v1/sandboxes/${sandboxId}/exec`, key, { command: 'true' });
    return status === 200;
  });
  const link = await call('POST', `/v1/sandboxes/${sandboxId}/previews`, { port: 3000, audience: 'public' });
  publicLink = new URL((link['preview'] as { url: string }).url);
  visited = await visit();
});
after(async () => {
  await berth.remove(key);
});

async function call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const answer = await berth.call(method, path, key, body);
  assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** Status of a visit by the public link, made before every rotation. */
async function visit(): Promise<number | undefined> {
  const { pathname, search, host } = publicLink;
  const visiting = request(berth.url + pathname + search, { headers: { host }, agent: false });
  const answered = once(visiting, 'response') as Promise<[IncomingMessage]>;
  visiting.end();
  const [response] = await answered;
  response.resume();
  return response.statusCode;
}

/** Sends requests of every kind until `work` has ended; returns their number. */
async function underRequests(work: () => Promise<void>): Promise<number> {
  const over = new AbortController();
  let count = 0;
  const clients = [0, 1].map(async (client) => {
    for (; !over.signal.aborted; count += 1) {
      const { stdout } = await call('POST', `/v1/sandboxes/${sandboxId}/exec`, { command: `echo ${client}` });
      assert.equal(stdout, `${client}\n`);
      assert.equal(await visit(), visited);
      await call('POST', `/v1/orgs/${berth.greeted('org')}/projects`, {
        name: `during-${client}-${count}`,
        repoCredentials: { token: 'ghp_during' },
      });
    }
  });
  try {
    await Promise.race([work(), Promise.all(clients)]);
  } finally {
    over.abort();
  }
  await Promise.all(clients);
  return count;
}

async function secrets(name: 'secret-key' | 'host-token'): Promise<string[]> {
  return (await readFile(`${berth.folder}/secrets/api/${name}`, 'utf8')).trim().split('\n');
}

async function show(): Promise<string[]> {
  const { code, stdout, stderr } = await runVerb('secrets', 'show', '--data-dir', berth.folder);
  assert.equal(code, 0, stderr);
  return stdout.trim().split('\n');
}

async function rotate(name: string): Promise<void> {
  const { code, stdout, stderr } = await runVerb('secrets', 'rotate', name, '--data-dir', berth.folder);
  assert.equal(code, 0, stderr);
  assert.equal(stdout, '');
  for (const secret of [...(await secrets('secret-key')), ...(await secrets('host-token'))])
    assert.ok(!stderr.includes(secret), 'no secret is printed');
}

test('a rotation of the host token under requests fails none, and only the new token remains', async () => {
  const [old] = await secrets('host-token');
  assert.ok((await underRequests(() => rotate('host-token'))) > 0);
  const now = await secrets('host-token');
  assert.equal(now.length, 1);
  assert.notEqual(now[0], old);
});

test('a rotation of the secret key under requests fails none; links stay, values are sealed again', async () => {
  const [old] = await secrets('secret-key');
  assert.ok((await underRequests(() => rotate('secret-key'))) > 0);
  const now = await secrets('secret-key');
  assert.deepEqual([now.length, now[1]], [2, old]);
  await untilTrue(
    'no value of the former key',
    async () => {
      const [current, former] = await show();
      return /current [1-9]\d* stored values$/.test(current ?? '') && /former needed by sign-ins/.test(former ?? '');
    },
    SEALED_AGAIN_MS,
  );
  const { mode, uid } = await stat(`${berth.folder}/secrets/api/secret-key`);
  assert.deepEqual([mode & 0o777, uid], [0o640, 0]);
});

test('kills of the rotation and of the API lose nothing: the next rotation completes', async () => {
  const before = await secrets('secret-key');
  const args = [BERTH, 'secrets', 'rotate', 'secret-key', '--data-dir', berth.folder];
  const rotation = spawn(process.execPath, args, { stdio: 'ignore' });
  const ended = once(rotation, 'exit');
  await untilTrue('a new key in the file', async () => (await secrets('secret-key')).length > before.length);
  rotation.kill('SIGKILL');
  await ended;
  await call('POST', `/v1/sandboxes/${sandboxId}/exec`, { command: 'true' });
  await rotate('secret-key');
  const api = (await berth.services())['api'];
  process.kill(api?.pid ?? 0, 'SIGKILL');
  const current = /^secret-key (\w{8}) current/.exec((await show())[0] ?? '')?.[1];
  assert.ok(current !== undefined);
  await untilTrue(
    'every value under the current key',
    async () => {
      const { rows } = await database.query<{ former: number; values: number }>(
        `select count(*)::int as values,
         count(*) filter (where encode(substring(repo_credentials_sealed from 2 for 4), 'hex') <> $1)::int as former
       from project where repo_credentials_sealed is not null`,
        [current],
      );
      return (rows[0]?.values ?? 0) > 0 && rows[0]?.former === 0;
    },
    SEALED_AGAIN_MS,
  );
});

test('retiring refuses needed keys, and removes them with --force', async () => {
  const folder = ['--data-dir', berth.folder];
  const refused = await runVerb('secrets', 'retire', 'secret-key', ...folder);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /The former key \w{8} stays: .* for up to 30 days/);
  const forced = await runVerb('secrets', 'retire', 'secret-key', '--force', ...folder);
  assert.equal(forced.code, 0, forced.stderr);
  assert.equal((await secrets('secret-key')).length, 1);
  assert.notEqual(await visit(), visited, 'the link of the removed key is refused');
  assert.match((await runVerb('secrets', 'rotate', 'api-key', ...folder)).stderr, /known: secret-key, host-token/);
});

test('a stopped service rotates too, and starts with the new secrets', async () => {
  await database.end();
  await runVerb('down', '--data-dir', berth.folder);
  await berth.ended();
  await rotate('host-token');
  assert.equal((await secrets('host-token')).length, 1);
  await berth.up();
  await call('POST', `/v1/sandboxes/${sandboxId}/exec`, { command: 'true' });
});

test('secrets of an earlier version are moved, and stay readable under their old names', async () => {
  for (const name of ['secret-key', 'host-token'] as const) {
    const link = await readFile(`${berth.folder}/secrets/${name}`, 'utf8');
    assert.equal(link.trim(), (await secrets(name)).join('\n'));
  }
});
