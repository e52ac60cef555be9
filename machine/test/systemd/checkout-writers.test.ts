import assert from 'node:assert/strict';
import { chmod, chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { foreignWriter } from '../../src/systemd/checkout-writers.ts';

test('a checkout that others than root can change is named with the place', async (context) => {
  // Below a folder with the sticky bit.
  const folder = await mkdtemp(join(tmpdir(), 'berth-writers-'));
  context.after(() => rm(folder, { recursive: true }));
  const checkout = join(folder, 'home/berth');
  await mkdir(checkout, { recursive: true, mode: 0o755 });
  assert.equal(await foreignWriter(checkout), null);

  await chown(join(folder, 'home'), 1_000, 1_000);
  assert.equal(await foreignWriter(checkout), `${join(folder, 'home')} belongs to the user 1000`);
  await chown(join(folder, 'home'), 0, 0);
  await chmod(checkout, 0o775);
  assert.equal(await foreignWriter(checkout), `${checkout} is writable by others than root`);
});
