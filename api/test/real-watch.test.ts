// Watches of folders through all layers, on the real guest daemon without a VM.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { FileChanges } from '@berth/contract/files/watch.ts';
import { FakeInstallation } from './fake-installation.ts';
import { untilTrue } from '../../os/test/until.ts';

let installation: FakeInstallation;
let id: string;
before(async () => {
  installation = await FakeInstallation.start({});
  const projectId = await installation.makeProject({ name: 'watched' });
  ({ id } = await installation.create({ projectId }));
  await installation.until(id, ({ status }) => status === 'ready');
});
after(() => installation.stop());

async function changes(cursor?: string): Promise<FileChanges> {
  const query = cursor === undefined ? '' : `&cursor=${cursor}`;
  const url = `${installation.url}/v1/sandboxes/${id}/files/changes?path=/code&recursive=true${query}`;
  const headers = { authorization: `Bearer ${installation.token}`, prefer: 'wait=25' };
  const response = await fetch(url, { headers });
  const body = (await response.json()) as FileChanges;
  if (response.status !== 200) throw new Error(JSON.stringify(body));
  return body;
}

/** Paths of the changes after the cursor, up to that of `last`. */
async function pathsUpTo(last: string, cursor: string): Promise<{ paths: string[]; cursor: string }> {
  const paths: string[] = [];
  for (let from = cursor; ;) {
    const found = await changes(from);
    assert.equal(found.reset, false);
    from = found.cursor;
    paths.push(...found.changes.map(({ path }) => path));
    if (paths.includes(last)) return { paths, cursor: from };
  }
}

test('a cursor continues on another API process, after a restart of the host daemon, and after a sleep', async () => {
  const begun = await changes();
  assert.deepEqual([begun.path, begun.changes, begun.reset], ['/code', [], false]);
  await installation.exec(id, 'mkdir -p a/b/c && touch a/b/c/one');
  const first = await pathsUpTo('/code/a/b/c/one', begun.cursor);
  assert.deepEqual([...new Set(first.paths)].slice(0, 2), ['/code/a', '/code/a/b']);

  await installation.end('api');
  await installation.run('api');
  await installation.exec(id, 'touch a/two');
  const second = await pathsUpTo('/code/a/two', first.cursor);
  assert.ok(!second.paths.includes('/code/a/b'), second.paths.join(' '));

  await installation.end('host');
  await installation.run('host');
  await untilTrue('the host daemon serves the guest', () =>
    installation.exec(id, 'touch a/three').then(
      () => true,
      () => false,
    ),
  );
  const third = await pathsUpTo('/code/a/three', second.cursor);

  const asleep = changes(third.cursor).then(
    () => 'changes',
    (error: unknown) => String(error),
  );
  await installation.call('POST', `/v1/sandboxes/${id}/sleep`);
  await installation.until(id, ({ status }) => status === 'stopped');
  assert.match(await asleep, /sandbox_state_conflict|sandbox_unreachable/);
  await assert.rejects(changes(third.cursor), /sandbox_state_conflict/);
  await installation.call('POST', `/v1/sandboxes/${id}/wake`);
  await installation.until(id, ({ status }) => status === 'ready');
  await installation.exec(id, 'touch a/four');
  await pathsUpTo('/code/a/four', third.cursor);
});
