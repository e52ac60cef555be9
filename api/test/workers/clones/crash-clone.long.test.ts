// A replica is killed at every durable point of a clone, at create and after a wake; the next one
// clones and reports once.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import type { SandboxRow } from '../../../src/store/database/schema.ts';
import { CRASH_POINTS } from '../../../src/workers/steps/crash-point.ts';
import { pointsOf } from '../../../../os/test/crash-points.ts';
import type { Replica } from '../replica.ts';
import { openWorld, type World } from '../world.ts';

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.close());
afterEach(async () => {
  try {
    await world.atRest();
  } finally {
    await world.calm();
  }
});

const startReplica = (crashAt?: string): Promise<Replica> => world.start({}, crashAt);

const newest = async (): Promise<string> => {
  const row = await world.db.selectFrom('sandbox').select('id').orderBy('created_at', 'desc').executeTakeFirstOrThrow();
  return row.id;
};
const kindsOf = async (id: string): Promise<string[]> =>
  (await world.db.selectFrom('activity').select('kind').where('sandbox_id', '=', id).orderBy('seq').execute()).map(
    ({ kind }) => kind,
  );
const isOver = (row: SandboxRow): boolean => row.clone_status !== 'pending' && row.status === 'ready';
const END = ['sandbox_clone_started', 'sandbox_clone_finished', 'sandbox_ready'];

/** The response may arrive before the crash: a sandbox responds while it is being cloned. */
async function untilKilled(replica: Replica, asked: Promise<unknown>): Promise<void> {
  const outcome = await asked.then(
    () => 'answered',
    (error: Error) => error.message,
  );
  assert.match(outcome, /^answered$|the replica ended/);
  assert.equal(await replica.ended, 'SIGKILL');
}

const POINTS = pointsOf(CRASH_POINTS, 'clone:');

for (const point of POINTS) {
  test(`a replica killed at ${point} of a create leaves one clone, reported once`, async () => {
    const killed = await startReplica(point);
    await untilKilled(killed, killed.ask('create', { repository: 'acme/web' }));
    await startReplica();
    const id = await newest();
    const row = await world.until(id, isOver);
    assert.deepEqual([row.clone_status, row.clone_epoch, row.epoch], ['cloned', 1, 1]);
    assert.equal(world.host.cloned.get(id), 1);
    assert.equal(world.host.made.get(id), 1);
    assert.deepEqual(await kindsOf(id), ['sandbox_created', 'sandbox_running', ...END]);
    const intervals = await world.db
      .selectFrom('usage_interval')
      .select('during')
      .where('sandbox_id', '=', id)
      .execute();
    assert.deepEqual(
      intervals.map(({ during }) => during.endsWith(',)')),
      [true],
    );
  });

  test(`a replica killed at ${point} after a wake leaves one clone, reported once`, async () => {
    const maker = await startReplica();
    world.host.cloneMs = 60_000;
    const { id } = await maker.ask('create', { repository: 'acme/web' });
    assert.equal((await maker.ask('sleep', { sandboxId: id })).status, 'stopped');
    await maker.stop();
    world.host.cloneMs = 0;
    const killed = await startReplica(point);
    await untilKilled(killed, killed.ask('wake', { sandboxId: id }));
    await startReplica();
    const row = await world.until(id, isOver);
    assert.deepEqual([row.clone_status, row.clone_epoch, row.epoch, row.last_wake_from], ['cloned', 3, 3, 'snapshot']);
    assert.deepEqual([world.host.cloned.get(id), world.host.woken.get(id)], [1, 1]);
    assert.deepEqual((await kindsOf(id)).slice(-5), ['sandbox_wake_requested', 'sandbox_woken', ...END]);
  });
}
