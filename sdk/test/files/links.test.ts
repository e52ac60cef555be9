// File links against the real service with fake VMs, and against the test server.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Berth, Sandbox } from '../../src/index.ts';
import { failing, realWorld, worldInMemory, type World } from '../worlds.ts';

const put = { method: 'PUT', body: 'new' };

for (const open of [realWorld, worldInMemory]) {
  describe(open === realWorld ? 'on the real service' : 'on the test server', () => {
    let world: World;
    let berth: Berth;
    before(async () => {
      world = await open();
      berth = world.client();
    });
    after(() => world.close());

    const make = async (): Promise<Sandbox> =>
      await berth.sandboxes.create({ agent: 'agent_one', machineSize: 'small' });
    /** Requests the link at the address that listens, without a credential. */
    const use = async ({ url }: { url: string }, init?: RequestInit): Promise<Response> =>
      await world.fetch(world.url + new URL(url).pathname, init);
    const code = async (response: Promise<Response>): Promise<unknown> =>
      ((await (await response).json()) as { error: { code: string } }).error.code;

    test('a link to read sends one file, whole or by ranges', async () => {
      await using sandbox = await make();
      const { files } = sandbox;
      await files.write('shared.txt', 'content');
      const link = await files.link('shared.txt', { action: 'read' });
      assert.deepEqual([link.method, link.action, link.path], ['GET', 'read', '/code/shared.txt']);
      assert.ok(Math.abs(Date.parse(link.expiresAt) - Date.now() - 900_000) < 60_000, link.expiresAt);
      assert.equal(await (await use(link)).text(), 'content');
      const part = await use(link, { headers: { range: 'bytes=1-2' } });
      assert.deepEqual([part.status, await part.text()], [206, 'on']);
      assert.equal(await code(use(link, put)), 'method_not_allowed');
      const missing = await files.link('missing', { action: 'read', fileName: 'a.txt' });
      assert.equal(await code(use(missing)), 'file_not_found');
    });

    test('a link to write stores one file within its terms', async () => {
      await using sandbox = await make();
      const { files } = sandbox;
      const link = await files.link('in/new.txt', { action: 'write', maxBytes: 3, expiresInSeconds: 60 });
      const { path, size } = (await (await use(link, put)).json()) as { path: string; size: number };
      assert.deepEqual([link.method, path, size], ['PUT', '/code/in/new.txt', 3]);
      assert.equal(await files.read('in/new.txt'), 'new');
      assert.equal(await code(use(link, { ...put, body: 'long' })), 'file_too_large');
      assert.equal(await code(use(link)), 'method_not_allowed');
      const once = await files.link('once', { action: 'write', overwrite: false });
      assert.equal((await use(once, put)).status, 200);
      assert.equal(await code(use(once, put)), 'file_exists');
      const [written] = (await berth.raw.listActivity({ path: { orgId: world.orgId } })).activity;
      assert.deepEqual(
        [written?.kind, written?.actor.kind, written?.actor.id],
        ['sandbox_file_written', 'file_link', once.id],
      );
    });

    test('bad terms are refused, and links end with the sandbox', async () => {
      const sandbox = await make();
      const { files } = sandbox;
      await assert.rejects(files.link('a/', { action: 'read' }), failing('not_a_file', 400));
      for (const wrong of [
        { action: 'read', maxBytes: 1 },
        { action: 'write', fileName: 'a' },
        { action: 'write', expiresInSeconds: 86_401 },
      ] as const)
        await assert.rejects(files.link('a', wrong), failing('invalid_request', 400));
      const link = await files.link('a', { action: 'read' });
      assert.equal(await code(use({ url: `${link.url}x` })), 'file_link_invalid');
      await sandbox.sleep();
      assert.equal(await code(use(link)), 'file_link_unavailable');
      await sandbox.destroy();
      assert.equal(await code(use(link)), 'file_link_expired');
    });
  });
}
