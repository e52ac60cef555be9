// Start of the durable work, and its rows.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { migrate } from '../../src/store/database/migrate.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { Replica } from './replica.ts';
import { openWorld, type World } from './world.ts';

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.close());

test('replicas that start concurrently on an empty database all find its tables', async () => {
  const url = await world.postgres.createDatabase();
  const applied = await Promise.all([migrate(url), migrate(url), migrate(url)]);
  assert.equal(applied.filter((names) => names.length > 0).length, 1);
  assert.deepEqual(await migrate(url), []);
});

test('replicas that start concurrently all serve', async () => {
  const both = await Promise.all([Replica.start(world.replica), Replica.start(world.replica)]);
  for (const replica of both) assert.equal((await replica.ask('create')).status, 'ready');
  for (const replica of both) await replica.stop();
});

test('a finished step leaves no row', async () => {
  const replica = await Replica.start(world.replica);
  try {
    const { id } = await replica.ask('create');
    await replica.ask('sleep', { sandboxId: id });
    await replica.ask('wake', { sandboxId: id });
    await replica.ask('destroy', { sandboxId: id });
    // The response is sent at the commit; the row is deleted a moment later.
    const rows = world.db.selectFrom('durable_step').select('id');
    await untilTrue('the steps are removed', async () => (await rows.execute()).length === 0);
  } finally {
    await replica.stop();
  }
});
