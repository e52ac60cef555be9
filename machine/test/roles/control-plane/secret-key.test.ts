// Sources of the secret key on a host: the data folder, the operator's file, or commands.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { isInMemory } from '@berth/os/secrets/memory-folder.ts';
import {
  prepareSecretKey,
  requireRotatableKey,
  requireSecretKey,
  storeSecretKey,
} from '../../../src/roles/control-plane/secret-key.ts';
import { instancePaths, prepareInstance, secretKeyFile, type InstancePaths } from '../../../src/supervisor/instance.ts';

const USER = { name: 'nobody', uid: 65_534, gid: 65_534 };

let root: string;
let folder: string;
let paths: InstancePaths;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-secret-key-'));
});
beforeEach(async () => {
  folder = await mkdtemp(join(root, 'case-'));
  paths = instancePaths(join(folder, 'data'));
  await prepareInstance(paths, USER);
});
afterEach(async () => {
  const file = await secretKeyFile(paths);
  if (file !== paths.secretKey) await rm(dirname(dirname(file)), { recursive: true, force: true });
});
after(() => rm(root, { recursive: true }));

const newKey = (): string => randomBytes(32).toString('base64');

const prepare = (environment: Record<string, string>): Promise<void> => prepareSecretKey(paths, USER, environment);

async function givenFile(...lines: string[]): Promise<{ BERTH_SECRET_KEY_FILE: string }> {
  const file = join(folder, 'given');
  await writeFile(file, `${lines.join('\n')}\n`, { mode: 0o600 });
  return { BERTH_SECRET_KEY_FILE: file };
}

/** A key management service: a file with commands that print and replace it. */
async function givenCommands(key: string): Promise<Record<string, string>> {
  const [vault, store] = [join(folder, 'vault'), join(folder, 'store')];
  await writeFile(vault, `${key}\n`);
  await writeFile(store, `#!/bin/sh\ncat > ${vault}\n`, { mode: 0o755 });
  return { BERTH_SECRET_KEY_COMMAND: `/bin/cat ${vault}`, BERTH_SECRET_KEY_STORE_COMMAND: store };
}

/** The key that the API reads. */
const loaded = async (): Promise<string> => (await readFile(await secretKeyFile(paths), 'utf8')).trim();

test('without a setting the key is made in the data folder, once', async () => {
  await prepare({});
  const made = await loaded();
  await prepare({});
  assert.equal(await loaded(), made);
  assert.equal(await secretKeyFile(paths), paths.secretKey);
});

test('a key from a file or a command is in memory only, closed to the user of the API', async () => {
  const key = newKey();
  for (const environment of [await givenFile(key), await givenCommands(key)]) {
    await prepare(environment);
    assert.equal(await loaded(), key);
    const copy = await secretKeyFile(paths);
    assert.ok(await isInMemory(copy));
    const { mode, uid, gid } = await stat(copy);
    assert.deepEqual([mode & 0o777, uid, gid], [0o640, 0, USER.gid]);
    assert.equal((await stat(dirname(dirname(copy)))).mode & 0o777, 0o700);
    assert.deepEqual((await readdir(paths.apiSecrets)).toSorted(), ['host-token']);
  }
});

test('a key left in the data folder is refused with the way to move it', async () => {
  await prepare({});
  await assert.rejects(prepare(await givenFile(newKey())), ({ message, remedy }: Error & { remedy?: string }) => {
    assert.equal(message, `cannot use BERTH_SECRET_KEY_FILE: ${paths.secretKey} has a secret key too`);
    return remedy === `copy its lines to where the variable reads the key, then remove it: shred -u ${paths.secretKey}`;
  });
  await rm(paths.secretKey);
  const earlier = join(paths.secrets, 'secret-key');
  await rm(earlier);
  await writeFile(earlier, 'of an earlier version\n');
  await assert.rejects(prepare(await givenFile(newKey())), new RegExp(`${earlier} has a secret key too$`));
});

test('once the key comes from elsewhere, a start without the variable is refused and makes no key', async () => {
  await prepare(await givenFile(newKey()));
  await rm(dirname(dirname(await secretKeyFile(paths))), { recursive: true });
  for (const start of [prepare({}), requireSecretKey(paths, USER, {})])
    await assert.rejects(start, /comes from elsewhere, and no variable names its source/);
  await assert.rejects(lstat(paths.secretKey), { code: 'ENOENT' });
});

test('a missing file, no key and contradicting variables are refused', async () => {
  const wrong: [Record<string, string>, RegExp][] = [
    [{ BERTH_SECRET_KEY_FILE: join(folder, 'none') }, /cannot use the file of BERTH_SECRET_KEY_FILE: ENOENT/],
    [{ BERTH_SECRET_KEY_COMMAND: '/bin/echo no access to the key' }, /a line is not base64 of at least 32 bytes$/],
    [{ BERTH_SECRET_KEY_COMMAND: '/bin/false' }, /BERTH_SECRET_KEY_COMMAND: \/bin\/false failed/],
    [{ BERTH_SECRET_KEY_COMMAND: '/a', BERTH_SECRET_KEY_FILE: '/a' }, /together/],
    [{ BERTH_SECRET_KEY_STORE_COMMAND: '/a', BERTH_SECRET_KEY_FILE: '/a' }, /without BERTH_SECRET_KEY_COMMAND/],
  ];
  for (const [environment, why] of wrong) await assert.rejects(prepare(environment), why);
  await assert.rejects(lstat(paths.loadedKey), { code: 'ENOENT' });
});

test('a rotation stores keys in the file with its owner and mode, or by the command, then in memory', async () => {
  const [old, fresh] = [newKey(), newKey()];
  for (const environment of [await givenFile(old), await givenCommands(old)]) {
    await prepare(environment);
    await requireRotatableKey(paths, USER, environment);
    await storeSecretKey(paths, USER, environment, `${fresh}\n${old}\n`);
    assert.equal(await loaded(), `${fresh}\n${old}`);
    await prepare(environment);
    assert.equal(await loaded(), `${fresh}\n${old}`);
  }
  assert.equal((await stat(join(folder, 'given'))).mode & 0o777, 0o600);
});

test('a rotation is refused where Berth cannot store keys', async () => {
  const commands = await givenCommands(newKey());
  await prepare(commands);
  const { BERTH_SECRET_KEY_COMMAND: only = '' } = commands;
  const rotatable = (environment: Record<string, string>): Promise<void> =>
    requireRotatableKey(paths, USER, environment);
  await assert.rejects(rotatable({ BERTH_SECRET_KEY_COMMAND: only }), /BERTH_SECRET_KEY_STORE_COMMAND is not set$/);
  const inMemory = await realpath(await secretKeyFile(paths));
  await assert.rejects(rotatable({ BERTH_SECRET_KEY_FILE: inMemory }), /is in memory, and a changed key would be lost/);
  await assert.rejects(rotatable(await givenFile(newKey())), /its source lacks the current key of the service$/);
});

test('a command that loses the keys it stores changes nothing for the API', async () => {
  const commands = await givenCommands(newKey());
  await prepare(commands);
  const before = await loaded();
  await writeFile(join(folder, 'store'), '#!/bin/sh\ncat > /dev/null\n');
  await assert.rejects(storeSecretKey(paths, USER, commands, `${newKey()}\n`), /does not print the keys that/);
  assert.equal(await loaded(), before);
});

test('keys that a killed rotation stored are loaded by the next one', async () => {
  const [old, fresh] = [newKey(), newKey()];
  await prepare(await givenFile(old));
  await requireRotatableKey(paths, USER, await givenFile(old, fresh));
  assert.equal(await loaded(), `${old}\n${fresh}`);
});

test('a folder in memory of another user is refused', async () => {
  await prepare(await givenFile(newKey()));
  const closed = dirname(dirname(await secretKeyFile(paths)));
  await rm(closed, { recursive: true });
  await mkdir(closed);
  await chmod(closed, 0o777);
  await assert.rejects(prepare(await givenFile(newKey())), /belongs to another user$/);
  await chmod(closed, 0o700);
});
