import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { isInMemory, writableMemoryFolder } from '@berth/os/secrets/memory-folder.ts';
import { readConfig } from '../../../src/config/config.ts';
import { encryptionCheck } from '../../../src/roles/control-plane/checks.ts';
import { keyBesideData } from '../../../src/roles/control-plane/key-placement.ts';

const ON = { BERTH_ENCRYPT_DISKS: '1' };

let folder: string;
let memory: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-placement-'));
  memory = await mkdtemp(join((await writableMemoryFolder()) ?? '', 'berth-placement-'));
  await writeFile(join(folder, 'key'), '');
  await writeFile(join(memory, 'key'), '');
});
after(async () => {
  for (const made of [folder, memory]) await rm(made, { recursive: true });
});

const look = (
  environment: Record<string, string>,
  databaseUrl: string | null = null,
  dataFolder = join(folder, 'data'),
) => keyBesideData({ dataFolder, databaseUrl }, environment);

test('a key on the file system of sandboxes or database gets a warning, also before a start', async (context) => {
  if (await isInMemory(folder)) return context.skip('the temporary folder is in memory');
  assert.match(
    (await look(ON))?.detail ?? '',
    /secret-key is on the file system of \S+\/host\/vms and \S+\/postgres: a copy opens/,
  );
  const given = { ...ON, BERTH_SECRET_KEY_FILE: join(folder, 'key') };
  const warning = await look(given, 'postgres://elsewhere');
  assert.match(warning?.detail ?? '', /key is on the file system of \S+\/host\/vms: a copy opens/);
  assert.match(warning?.remedy ?? '', /BERTH_SECRET_KEY_FILE or BERTH_SECRET_KEY_COMMAND/);
});

test('a key in memory, of a command or on another file system gets none, nor do unencrypted disks', async () => {
  assert.equal(await look({}), null);
  assert.equal(await look({ ...ON, BERTH_ENCRYPT_DISKS: '0' }), null);
  assert.equal(await look({ ...ON, BERTH_SECRET_KEY_COMMAND: '/bin/cat x' }), null);
  assert.equal(await look({ ...ON, BERTH_SECRET_KEY_FILE: join(memory, 'key') }), null);
  const inMemory = join(memory, 'data');
  assert.equal(await look({ ...ON, BERTH_SECRET_KEY_FILE: join(folder, 'key') }, null, inMemory), null);
  const loaded = join(folder, 'loaded');
  await mkdir(join(loaded, 'secrets'), { recursive: true });
  await symlink(memory, join(loaded, 'secrets', 'loaded-key'));
  await writeFile(join(memory, 'secret-key'), '');
  assert.equal(await look(ON, null, loaded), null, 'the key that a service loaded');
});

test('the doctor reports the placement as a warning while disks are encrypted', async (context) => {
  if (await isInMemory(folder)) return context.skip('the temporary folder is in memory');
  const grades = async (environment: Record<string, string>) => {
    const config = readConfig({ dataDir: join(folder, 'data') }, {});
    return (await encryptionCheck(config, environment).run()).map(({ grade }) => grade);
  };
  assert.deepEqual(await grades({}), []);
  assert.deepEqual(await grades(ON), ['warn']);
  assert.deepEqual(await grades({ ...ON, BERTH_SECRET_KEY_FILE: join(memory, 'key') }), ['ok']);
});
