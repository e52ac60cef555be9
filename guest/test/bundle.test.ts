// The bundle is reproducible, small, and needs only Node.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { bundleGuestDaemon, GUEST_NODE_FLAGS } from '../src/bundle.ts';
import { until } from './daemon.ts';

test('the same sources give the same bytes, without a path of the build host', async () => {
  const [one, two] = await Promise.all([bundleGuestDaemon(), bundleGuestDaemon()]);
  assert.deepEqual(one, two);
  assert.equal(one.sha256, createHash('sha256').update(one.code).digest('hex'));
  const text = Buffer.from(one.code).toString('utf8');
  assert.equal(text.includes(fileURLToPath(new URL('../..', import.meta.url))), false);
});

test('the bundle imports only Node modules, and no zod', async () => {
  const text = Buffer.from((await bundleGuestDaemon()).code).toString('utf8');
  const imports = [...text.matchAll(/from"([^"]+)"/g)].map(([, name = '']) => name);
  assert.ok(imports.includes('node:http'));
  assert.deepEqual(
    imports.filter((name) => !isBuiltin(name)),
    [],
  );
  assert.ok(text.length < 225_000, `${text.length} bytes`);
});

test('making a bundle leaves no process behind', async () => {
  await Promise.all([bundleGuestDaemon(), bundleGuestDaemon()]);
  const children = async (): Promise<string> => {
    const tasks = await readdir('/proc/self/task');
    return (await Promise.all(tasks.map((task) => readFile(`/proc/self/task/${task}/children`, 'latin1')))).join('');
  };
  await until('no child is left', async () => (await children()).trim() === '');
  assert.ok((await bundleGuestDaemon()).code.length > 0, 'it can be asked again');
});

test('the service of the image runs the bundle with the tested flags', async () => {
  const service = await readFile(new URL('../../image/recipe/root/etc/sv/guestd/run', import.meta.url), 'utf8');
  assert.ok(service.includes(`/node ${GUEST_NODE_FLAGS.join(' ')} /opt/berth/guestd.mjs\n`), service);
});
