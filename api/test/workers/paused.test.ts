// A replica that is paused for longer than its lease, and resumes.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { untilTrue } from '../../../os/test/until.ts';
import { Replica } from './replica.ts';
import { openWorld, type World } from './world.ts';

const LEASE_MS = 1_000;

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.close());

test('a replica paused beyond its lease loses its step to another and writes nothing when it resumes', async () => {
  const options = { ...world.replica, leaseMs: LEASE_MS };
  const [paused, other] = [await Replica.start(options), await Replica.start(options)];
  try {
    world.host.createMs = 60_000;
    const { id } = await paused.ask('create', { respondAsync: true });
    await untilTrue('the create reached the host', () => world.host.calls.length === 1);
    paused.signal('SIGSTOP');
    await untilTrue('the other asked the host too', () => world.host.calls.length === 2);
    world.host.finish('PUT');
    world.host.createMs = 0;
    await world.until(id, ({ status }) => status === 'ready');
    await other.ask('sleep', { sandboxId: id });
    paused.signal('SIGCONT');
    assert.equal((await paused.ask('create')).status, 'ready');
    await world.atRest();
    const row = await world.until(id, () => true);
    assert.deepEqual([row.status, row.epoch, world.host.made.get(id)], ['stopped', 2, 1]);
    const activity = await world.db
      .selectFrom('activity')
      .select('kind')
      .where('sandbox_id', '=', id)
      .orderBy('seq')
      .execute();
    assert.deepEqual(
      activity.map(({ kind }) => kind),
      ['sandbox_created', 'sandbox_ready', 'sandbox_sleep_requested', 'sandbox_stopped'],
    );
  } finally {
    paused.signal('SIGCONT');
    await Promise.all([paused.stop(), other.stop()]);
  }
});
