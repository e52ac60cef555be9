// `berth up` and `berth secrets` with a secret key that comes from a key management service: here a
// file with commands that print and replace it.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, readlink, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from 'pg';
import { socketDatabaseUrl } from '../../src/roles/database/connection.ts';
import { TestInstance, runVerb } from './berth-program.ts';

let folder: string;
let vault: string;
let berth: TestInstance;
let key: string;
let sandboxId: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-elsewhere-'));
  vault = join(folder, 'vault');
  berth = await TestInstance.make();
  await berth.up();
  key = berth.greeted('API key');
  const { status, body } = await berth.call('POST', `/v1/orgs/${berth.greeted('org')}/sandboxes?wait=60`, key, {
    projectId: berth.greeted('project'),
    agent: 'agent_one',
  });
  assert.ok(status < 300, JSON.stringify(body));
  sandboxId = (body['sandbox'] as { id: string }).id;
  await stop();
});
after(async () => {
  const loaded = await readlink(`${berth.folder}/secrets/loaded-key`);
  await berth.remove(key);
  for (const made of [dirname(loaded), folder]) await rm(made, { recursive: true });
});

async function stop(): Promise<void> {
  await runVerb('down', '--data-dir', berth.folder);
  await berth.ended();
}

const vaultKeys = async (): Promise<string[]> => (await readFile(vault, 'utf8')).trim().split('\n');

async function secrets(...words: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  return await runVerb('secrets', ...words, '--data-dir', berth.folder);
}

async function exec(): Promise<number> {
  return (await berth.call('POST', `/v1/sandboxes/${sandboxId}/exec`, key, { command: 'true' })).status;
}

async function query(text: string, ...values: unknown[]): Promise<Record<string, string>[]> {
  const database = new Client(socketDatabaseUrl(`${berth.folder}/postgres/socket`));
  await database.connect();
  try {
    return (await database.query<Record<string, string>>(text, values)).rows;
  } finally {
    await database.end();
  }
}

/** Key id in the row with the sandbox's sealed data key; undefined without a row. */
async function sealedBy(): Promise<string | undefined> {
  const id = `encode(substring(key_sealed from 2 for 4), 'hex') as id`;
  return (await query(`select ${id} from sandbox_data_key where sandbox_id = $1`, sandboxId))[0]?.['id'];
}

test('a start with a key from a command is refused while the data folder has one too', async () => {
  process.env['BERTH_SECRET_KEY_COMMAND'] = `/bin/cat ${vault}`;
  const own = `${berth.folder}/secrets/api/secret-key`;
  const { code, stderr } = await runVerb('up', ...berth.flags);
  assert.equal(code, 1);
  assert.ok(stderr.includes(`${own} has a secret key too`) && stderr.includes(`shred -u ${own}`), stderr);
  await writeFile(vault, '');
  await rename(own, vault);
});

test('the moved key opens what it sealed, and is in no file of the disk, environment, argument or log', async () => {
  await berth.up();
  assert.equal(await exec(), 200);
  assert.deepEqual(await readdir(`${berth.folder}/secrets/api`), ['host-token']);
  const [secret = ''] = await vaultKeys();
  assert.equal(secret.length, 43);
  for (const { pid } of Object.values(await berth.services())) {
    for (const file of ['environ', 'cmdline']) {
      const text = await readFile(`/proc/${pid}/${file}`, 'utf8');
      assert.ok(!text.includes(secret) && !text.includes('BERTH_SECRET_KEY_COMMAND'), `${file} of ${pid}`);
    }
  }
  for (const log of await readdir(`${berth.folder}/log`))
    assert.ok(!(await readFile(`${berth.folder}/log/${log}`, 'utf8')).includes(secret), log);
});

test('a rotation is refused without a command that stores keys', async () => {
  const before = await vaultKeys();
  const { code, stderr } = await secrets('rotate', 'secret-key');
  assert.equal(code, 1);
  assert.match(stderr, /cannot change the secret key: .*STORE_COMMAND is not set\n.*restart Berth/s);
  assert.deepEqual(await vaultKeys(), before);
  assert.equal((await secrets('show')).code, 0);
});

test('after destroy, rotation and retirement no key of the source sealed the data key', async () => {
  const store = join(folder, 'store');
  await writeFile(store, `#!/bin/sh\ncat > ${vault}.new && mv ${vault}.new ${vault}\n`, { mode: 0o755 });
  process.env['BERTH_SECRET_KEY_STORE_COMMAND'] = store;
  const copied = await sealedBy();
  assert.ok(copied !== undefined);
  await berth.call('POST', `/v1/sandboxes/${sandboxId}/destroy?wait=60`, key);
  assert.equal(await sealedBy(), undefined);
  const before = await vaultKeys();
  assert.equal((await secrets('rotate', 'secret-key')).code, 0);
  assert.deepEqual((await vaultKeys()).slice(1), before);
  assert.ok((await secrets('show')).stdout.includes(`secret-key ${copied} former`));

  const retired = await secrets('retire', 'secret-key', '--force');
  assert.equal(retired.code, 0, retired.stderr);
  assert.equal((await vaultKeys()).length, 1);
  const shown = await secrets('show');
  assert.match(shown.stdout, /^secret-key \w{8} current/);
  assert.ok(!shown.stdout.includes(copied), shown.stdout);
});

test('a rotation at the limit of keys is refused before it writes an unreadable file', async () => {
  // A value of a lost key keeps every key.
  await query(`update project set repo_credentials_sealed = '\\x0200000000'`);
  const full = [...(await vaultKeys()), ...Array.from({ length: 7 }, () => randomBytes(32).toString('base64url'))];
  await writeFile(vault, full.join('\n'));
  const { code, stderr } = await secrets('rotate', 'secret-key');
  assert.equal(code, 1);
  assert.match(stderr, /cannot rotate: 8 secrets .*limit is 8\n.*--force/s);
  assert.deepEqual(await vaultKeys(), full);
});

test('a later start reads the rotated keys from the source, also after the copy in memory is gone', async () => {
  await stop();
  await rm(dirname(await readlink(`${berth.folder}/secrets/loaded-key`)), { recursive: true });
  const created = await runVerb('keys', 'create', '--data-dir', berth.folder);
  assert.equal(created.code, 0, created.stderr);
  const { BERTH_SECRET_KEY_COMMAND: command, BERTH_SECRET_KEY_STORE_COMMAND: store } = process.env;
  delete process.env['BERTH_SECRET_KEY_COMMAND'];
  delete process.env['BERTH_SECRET_KEY_STORE_COMMAND'];
  assert.match((await secrets('show')).stderr, /comes from elsewhere, and no variable names its source/);
  Object.assign(process.env, { BERTH_SECRET_KEY_COMMAND: command, BERTH_SECRET_KEY_STORE_COMMAND: store });
  await berth.up();
  assert.equal((await secrets('show')).stdout.match(/^secret-key /gm)?.length, 8);
});
