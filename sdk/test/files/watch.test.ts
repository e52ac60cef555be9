// Watches of folders on the real service and on the test server, with the same expectations.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Berth, FolderEvent, Sandbox } from '../../src/index.ts';
import { failing, realWorld, worldInMemory, type World } from '../worlds.ts';

function shown({ change, path, kind }: FolderEvent): string {
  return [change, ...(kind === undefined ? [] : [kind]), path].join(' ');
}

/** The next events of a watch. */
async function next(events: AsyncGenerator<FolderEvent>, count: number): Promise<string[]> {
  const seen: string[] = [];
  while (seen.length < count) {
    const { value, done } = await events.next();
    assert.ok(done !== true);
    seen.push(shown(value));
  }
  return seen;
}

for (const start of [realWorld, worldInMemory]) {
  describe(start === realWorld ? 'on the real service' : 'on the test server', () => {
    let world: World;
    let berth: Berth;
    before(async () => {
      world = await start();
      berth = world.client();
    });
    after(() => world.close());
    const make = async (): Promise<Sandbox> =>
      await berth.sandboxes.create({ agent: 'agent_one', machineSize: 'small' });

    test('a watch begins with a reset, and yields the changes below the folder as they happen', async () => {
      await using sandbox = await make();
      const { files } = sandbox;
      await files.write('src/old', '');
      const events = files.watch('src', { recursive: true });
      assert.deepEqual(await next(events, 1), ['reset directory /code/src']);
      const held = next(events, 3);
      await files.write('elsewhere', '');
      await files.write('src/lib/a', '1');
      await files.chmod('src/old', '600');
      assert.deepEqual(await held, [
        'created directory /code/src/lib',
        'created file /code/src/lib/a',
        'changed file /code/src/old',
      ]);
      await files.move('src/lib', 'src/moved');
      await files.delete('src/old');
      assert.deepEqual(await next(events, 4), [
        'removed directory /code/src/lib',
        'created directory /code/src/moved',
        'created file /code/src/moved/a',
        'removed /code/src/old',
      ]);
      await files.delete('src', { recursive: true });
      await assert.rejects(next(events, 9), failing('file_not_found', 404));
    });

    test('without recursive the content of folders below is not reported', async () => {
      await using sandbox = await make();
      const { files } = sandbox;
      await files.createFolder('sub');
      const stop = new AbortController();
      const events = files.watch(undefined, { signal: stop.signal });
      assert.deepEqual(await next(events, 1), ['reset directory /code']);
      await files.write('sub/a', '');
      await files.write('b', '');
      assert.deepEqual(await next(events, 1), ['created file /code/b']);
      const waiting = events.next();
      stop.abort(new Error('enough'));
      await assert.rejects(waiting, /enough/);
    });

    test('a cursor of another watch is answered with a reset, a malformed one refused', async () => {
      await using sandbox = await make();
      const path = { sandboxId: sandbox.id };
      const { cursor } = await berth.raw.watchFiles({ path });
      for (const query of [{ cursor, recursive: 'true' as const }, { cursor: 'fedcba9876543210.7' }]) {
        const found = await berth.raw.watchFiles({ path, query });
        assert.deepEqual([found.path, found.changes, found.reset], ['/code', [], true]);
      }
      await assert.rejects(berth.raw.watchFiles({ path, query: { cursor: '7' } }), failing('invalid_request', 400));
      await assert.rejects(sandbox.files.watch('none').next(), failing('file_not_found', 404));
    });

    test('a watch waits while the sandbox sleeps, wakes nothing, and goes on after a wake', async () => {
      await using sandbox = await make();
      const { files } = sandbox;
      const asleep = Promise.withResolvers<string>();
      const events = files.watch('', { onRetry: ({ code }) => asleep.resolve(code) });
      await next(events, 1);
      const held = next(events, 1);
      await sandbox.sleep();
      world.breakCalls(sandbox.id);
      assert.equal(await asleep.promise, 'sandbox_state_conflict');
      assert.equal((await sandbox.refresh()).status, 'stopped');
      await assert.rejects(files.watch('').next(), failing('sandbox_state_conflict', 409));
      await sandbox.wake();
      await files.write('a', '');
      assert.deepEqual(await held, ['created file /code/a']);
      await events.return(undefined as never);
    });
  });
}
