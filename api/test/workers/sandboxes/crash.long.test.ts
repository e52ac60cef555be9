// A replica is killed at every durable point of create, sleep, wake, resize, destroy, loss,
// recovery and reaping; the next one must leave nothing lost, doubled or leaked.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { closeUsageInterval } from '../../../src/store/usage/usage.ts';
import { CRASH_POINTS } from '../../../src/workers/steps/crash-point.ts';
import { pointsOf } from '../../../../os/test/crash-points.ts';
import { Replica, type ReplicaRequest } from '../replica.ts';
import { openWorld, type World } from '../world.ts';
import { deadlineOf } from '../../../../os/test/until.ts';

let world: World;
before(async () => {
  world = await openWorld();
  world.host.createMs = 10;
});
after(() => world.close());

const newest = async (): Promise<string> => {
  const row = await world.db.selectFrom('sandbox').select('id').orderBy('created_at', 'desc').executeTakeFirstOrThrow();
  return row.id;
};
const countSandboxes = async (): Promise<number> =>
  (await world.db.selectFrom('sandbox').select('id').execute()).length;

const activityOf = async (id: string): Promise<string[]> => {
  const rows = await world.db
    .selectFrom('activity')
    .select('kind')
    .where('sandbox_id', '=', id)
    .orderBy('at')
    .orderBy('id')
    .execute();
  return rows.map((row) => row.kind);
};
const intervalsOf = async (id: string): Promise<{ open: number; closed: number }> => {
  const rows = await world.db.selectFrom('usage_interval').select('during').where('sandbox_id', '=', id).execute();
  const open = rows.filter((row) => row.during.endsWith(',)')).length;
  return { open, closed: rows.length - open };
};

/** Asserts that the sandbox runs once and is metered once. */
async function assertReady(id: string): Promise<void> {
  await world.until(id, (row) => row.status === 'ready');
  assert.deepEqual(world.host.alive(id), [id]);
  assert.equal(world.host.made.get(id), 1);
  assert.deepEqual(await intervalsOf(id), { open: 1, closed: 0 });
  assert.deepEqual(await activityOf(id), ['sandbox_created', 'sandbox_ready']);
}

async function assertDeleted(id: string): Promise<void> {
  await world.until(id, (row) => row.status === 'deleted');
  assert.deepEqual(world.host.alive(id), []);
  assert.deepEqual(await intervalsOf(id), { open: 0, closed: 1 });
  assert.deepEqual(await activityOf(id), [
    'sandbox_created',
    'sandbox_ready',
    'sandbox_destroy_requested',
    'sandbox_deleted',
  ]);
}

async function makeDeleted(replica: Replica): Promise<string> {
  const { id } = await replica.ask('create');
  await replica.ask('destroy', { sandboxId: id });
  await assertDeleted(id);
  return id;
}

/**
 * The last points follow the commit that completes the request: the response may arrive before the
 * crash.
 */
async function requestUntilKilled(
  replica: Replica,
  verb: 'create' | 'sleep' | 'wake' | 'resize' | 'destroy',
  more?: Omit<ReplicaRequest, 'id' | 'verb'>,
): Promise<void> {
  const outcome = await replica.ask(verb, more).then(
    () => 'answered',
    (error: Error) => error.message,
  );
  assert.match(outcome, /^answered$|the replica ended \(SIGKILL\)/);
  assert.equal(await replica.ended, 'SIGKILL');
}

async function startReplica(crashAt?: string): Promise<Replica> {
  return await Replica.start(world.replica, crashAt);
}

/** Stops a replica once no step is left. */
async function stopAtRest(replica: Replica): Promise<void> {
  await world.atRest();
  await replica.stop();
}

for (const point of pointsOf(CRASH_POINTS, 'step:', 'provision:')) {
  test(`a replica killed at ${point} of a create loses, doubles and leaks nothing`, async () => {
    const before = await countSandboxes();
    const killed = await startReplica(point);
    await requestUntilKilled(killed, 'create');
    const next = await startReplica();
    try {
      if (point === 'provision:enqueued') {
        // Killed before the commit: nothing was acknowledged or stored.
        assert.equal(await countSandboxes(), before);
        assert.deepEqual(world.host.alive(), []);
        return;
      }
      const id = await newest();
      await assertReady(id);
      await next.ask('destroy', { sandboxId: id });
      await assertDeleted(id);
    } finally {
      await stopAtRest(next);
    }
  });
}

for (const point of pointsOf(CRASH_POINTS, 'step:', 'destroy:')) {
  test(`a replica killed at ${point} of a destroy loses, doubles and leaks nothing`, async () => {
    const killed = await startReplica(point === 'step:committed' ? `${point}#2` : point);
    const { id } = await killed.ask('create');
    await requestUntilKilled(killed, 'destroy', { sandboxId: id });
    const next = await startReplica();
    try {
      if (point === 'destroy:enqueued') {
        await assertReady(id);
        await next.ask('destroy', { sandboxId: id });
      }
      await assertDeleted(id);
    } finally {
      await stopAtRest(next);
    }
  });
}

for (const point of pointsOf(CRASH_POINTS, 'sleep:')) {
  test(`a replica killed at ${point} of a sleep loses, doubles and leaks nothing`, async () => {
    const killed = await startReplica(point);
    const { id } = await killed.ask('create');
    await requestUntilKilled(killed, 'sleep', { sandboxId: id });
    const next = await startReplica();
    try {
      // Killed before the commit: nothing was acknowledged or begun.
      if (point === 'sleep:enqueued') {
        await assertReady(id);
        await next.ask('sleep', { sandboxId: id });
      }
      const row = await world.until(id, ({ status }) => status === 'stopped');
      assert.deepEqual([row.epoch, row.wakes_from, row.status_reason_code], [2, 'snapshot', null]);
      assert.equal(world.host.vm(id)?.status, 'asleep');
      assert.deepEqual(await intervalsOf(id), { open: 0, closed: 1 });
      assert.deepEqual(await activityOf(id), [
        'sandbox_created',
        'sandbox_ready',
        'sandbox_sleep_requested',
        'sandbox_stopped',
      ]);
    } finally {
      await stopAtRest(next);
    }
  });
}

for (const point of pointsOf(CRASH_POINTS, 'wake:')) {
  test(`a replica killed at ${point} of a wake loses, doubles and leaks nothing`, async () => {
    const killed = await startReplica(point);
    const { id } = await killed.ask('create');
    await killed.ask('sleep', { sandboxId: id });
    await requestUntilKilled(killed, 'wake', { sandboxId: id });
    const next = await startReplica();
    try {
      if (point === 'wake:enqueued') {
        assert.equal((await world.until(id, () => true)).status, 'stopped');
        await next.ask('wake', { sandboxId: id });
      }
      const row = await world.until(id, ({ status }) => status === 'ready');
      assert.deepEqual([row.epoch, row.wakes_from, row.last_wake_from], [3, null, 'snapshot']);
      assert.deepEqual([world.host.alive(id), world.host.made.get(id), world.host.woken.get(id)], [[id], 1, 1]);
      assert.deepEqual(await intervalsOf(id), { open: 1, closed: 1 });
      assert.deepEqual((await activityOf(id)).slice(-3), [
        'sandbox_stopped',
        'sandbox_wake_requested',
        'sandbox_woken',
      ]);
    } finally {
      await stopAtRest(next);
    }
  });
}

for (const point of pointsOf(CRASH_POINTS, 'resize:')) {
  test(`a replica killed at ${point} of a live resize splits the metered time once and loses nothing`, async () => {
    const killed = await startReplica(point);
    const { id } = await killed.ask('create');
    const size = { vcpu: 2, memoryGb: 3 };
    await requestUntilKilled(killed, 'resize', { sandboxId: id, size });
    const next = await startReplica();
    try {
      if (point === 'resize:enqueued') {
        await assertReady(id);
        await next.ask('resize', { sandboxId: id, size });
      }
      const row = await world.until(id, ({ allocated_vcpu: vcpu }) => vcpu === 2);
      assert.deepEqual(
        [row.status, row.epoch, row.allocated_memory_gb, row.pending_vcpu, row.resizing],
        ['ready', 2, 3, null, false],
      );
      assert.equal(world.host.vm(id)?.spec?.memoryMib, 3_072);
      assert.deepEqual(await intervalsOf(id), { open: 1, closed: 1 });
      assert.deepEqual(await activityOf(id), [
        'sandbox_created',
        'sandbox_ready',
        'sandbox_resize_requested',
        'sandbox_resized',
      ]);
    } finally {
      await stopAtRest(next);
    }
  });
}

for (const point of pointsOf(CRASH_POINTS, 'recovered:')) {
  test(`a replica killed at ${point} while a lost VM returns leaves it awake and metered once`, async () => {
    const setUp = await startReplica();
    const { id } = await setUp.ask('create');
    await stopAtRest(setUp);
    await world.db
      .updateTable('sandbox')
      .set({
        status: 'failed',
        status_reason_code: 'host_lost',
        status_reason_message: 'x',
        wakes_from: 'disk',
        epoch: 2,
      })
      .where('id', '=', id)
      .execute();
    await closeUsageInterval(world.db, id);
    // Reached by the first poll after a start.
    await assert.rejects(startReplica(point), /SIGKILL/);
    const next = await startReplica();
    try {
      const row = await world.until(id, ({ status }) => status === 'ready');
      assert.deepEqual([row.status_reason_code, row.wakes_from], [null, null]);
      assert.deepEqual(await intervalsOf(id), { open: 1, closed: 1 });
      assert.deepEqual(await activityOf(id), ['sandbox_created', 'sandbox_ready', 'sandbox_recovered']);
    } finally {
      await stopAtRest(next);
    }
  });
}

for (const point of pointsOf(CRASH_POINTS, 'lost:')) {
  test(`a replica killed at ${point} while it records a lost VM leaves one failure and one interval`, async () => {
    const killed = await startReplica(point);
    const { id } = await killed.ask('create');
    world.host.killVm(id, 'its process was killed');
    assert.equal(await killed.ended, 'SIGKILL');
    const next = await startReplica();
    try {
      const row = await world.until(id, ({ status }) => status === 'failed');
      assert.equal(row.status_reason_code, 'process_ended');
      assert.match(row.status_reason_message ?? '', /^the process of its VM exited\. /);
      assert.equal(row.wakes_from, 'disk');
      assert.deepEqual(await intervalsOf(id), { open: 0, closed: 1 });
      assert.deepEqual(await activityOf(id), ['sandbox_created', 'sandbox_ready', 'sandbox_failed']);
    } finally {
      await stopAtRest(next);
    }
  });
}

test('a replica killed at reap:gone while it destroys an unclaimed VM does not block the next', async () => {
  const maker = await startReplica();
  const [first, second] = [await makeDeleted(maker), await makeDeleted(maker)];
  await stopAtRest(maker);
  const spec = { vcpu: 1, memoryMib: 1024, diskGib: 10, hostname: 'stray', sshAuthorizedKeys: [] };
  const killed = await startReplica('reap:gone');
  world.host.addVm(first, 1, spec);
  assert.equal(await killed.ended, 'SIGKILL');
  world.host.addVm(second, 2, spec);
  const next = await startReplica();
  try {
    const deadline = Date.now() + deadlineOf(15_000);
    while (world.host.alive(first).length + world.host.alive(second).length > 0) {
      assert.ok(Date.now() < deadline, 'a machine that nobody claims was left');
      await delay(10);
    }
  } finally {
    await stopAtRest(next);
  }
});
