import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { keepFromNetworkd } from '../../../src/network/slots/networkd.ts';

test('systemd-networkd is told once to leave devices alone, unless it does not run', async (context) => {
  const root = await mkdtemp(join(tmpdir(), 'berth-networkd-'));
  context.after(() => rm(root, { recursive: true }));
  let reloads = 0;
  const networkd = {
    state: join(root, 'state'),
    folder: join(root, 'network'),
    reload: () => Promise.resolve(void (reloads += 1)),
  };
  assert.equal(await keepFromNetworkd(networkd), null);
  await writeFile(networkd.state, '');
  const file = join(networkd.folder, '00-berth.network');
  assert.equal(
    await keepFromNetworkd(networkd),
    `Told systemd-networkd by ${file} to leave the devices of guests alone.`,
  );
  assert.match(await readFile(file, 'utf8'), /\[Match\]\nName=bv\*\n\n\[Link\]\nUnmanaged=yes/);
  assert.equal(await keepFromNetworkd(networkd), null);
  await writeFile(file, '# changed');
  await assert.rejects(
    keepFromNetworkd({ ...networkd, reload: () => Promise.reject(new Error('refused')) }),
    /refused/,
  );
  assert.notEqual(await keepFromNetworkd(networkd), null, 'the next start reloads');
  assert.equal(reloads, 2);
});
