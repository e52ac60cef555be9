// A replica is killed at every durable point of create, destroy, loss and reaping; the next one must leave nothing lost, doubled or leaked.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CRASH_POINTS } from '../../src/workers/crash-point.ts';
import { Replica } from './replica.ts';
import { openWorld, type World } from './world.ts';

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
const countSandboxes = async (): Promise<number> => (await world.db.selectFrom('sandbox').select('id').execute()).length;

const activityOf = async (id: string): Promise<string[]> => {
  const rows = await world.db.selectFrom('activity').select('kind').where('sandbox_id', '=', id).orderBy('at').orderBy('id').execute();
  return rows.map((row) => row.kind);
};
const intervalsOf = async (id: string): Promise<{ open: number; closed: number }> => {
  const rows = await world.db.selectFrom('usage_interval').select('during').where('sandbox_id', '=', id).execute();
  const open = rows.filter((row) => row.during.endsWith(',)')).length;
  return { open, closed: rows.length - open };
};

/** The sandbox runs, once, and is metered once. */
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
  assert.deepEqual(await activityOf(id), ['sandbox_created', 'sandbox_ready', 'sandbox_destroy_requested', 'sandbox_deleted']);
}

/** The last points come after the commit that answers the request: the answer may get out before the end. */
async function askUntilKilled(replica: Replica, verb: 'create' | 'destroy', more?: { sandboxId: string }): Promise<void> {
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

for (const point of CRASH_POINTS.filter((name) => /^(create:|step:|provision:)/.test(name))) {
  test(`a replica killed at ${point} of a create loses, doubles and leaks nothing`, async () => {
    const before = await countSandboxes();
    const killed = await startReplica(point);
    await askUntilKilled(killed, 'create');
    const next = await startReplica();
    try {
      if (point === 'create:enqueued') {
        // Killed before the commit: nothing was acknowledged, nothing may be left.
        assert.equal(await countSandboxes(), before);
        assert.deepEqual(world.host.alive(), []);
        return;
      }
      const id = await newest();
      await assertReady(id);
      await next.ask('destroy', { sandboxId: id });
      await assertDeleted(id);
    } finally {
      await next.stop();
    }
  });
}

for (const point of CRASH_POINTS.filter((name) => /^(step:|destroy:)/.test(name))) {
  test(`a replica killed at ${point} of a destroy loses, doubles and leaks nothing`, async () => {
    const killed = await startReplica(point === 'step:committed' ? `${point}#2` : point);
    const { id } = await killed.ask('create');
    await askUntilKilled(killed, 'destroy', { sandboxId: id });
    const next = await startReplica();
    try {
      if (point === 'destroy:enqueued') {
        await assertReady(id);
        await next.ask('destroy', { sandboxId: id });
      }
      await assertDeleted(id);
    } finally {
      await next.stop();
    }
  });
}

for (const point of CRASH_POINTS.filter((name) => name.startsWith('lost:'))) {
  test(`a replica killed at ${point} while it notes a lost machine leaves one failure and one closed interval`, async () => {
    const killed = await startReplica(point);
    const { id } = await killed.ask('create');
    world.host.killVm(id, 'its process was killed');
    assert.equal(await killed.ended, 'SIGKILL');
    const next = await startReplica();
    try {
      const row = await world.until(id, ({ status }) => status === 'failed');
      assert.equal(row.status_reason_code, 'machine_lost');
      assert.equal(row.status_reason_message, 'its process was killed');
      assert.deepEqual(await intervalsOf(id), { open: 0, closed: 1 });
      assert.deepEqual(await activityOf(id), ['sandbox_created', 'sandbox_ready', 'sandbox_failed']);
    } finally {
      await next.stop();
    }
  });
}

test('a replica killed at reap:gone while it destroys a machine nobody claims is no obstacle to the next', async () => {
  const [first, second] = ['sbx_aaaaaaaaaaaaaaaaaaaaaaaa', 'sbx_bbbbbbbbbbbbbbbbbbbbbbbb'];
  const spec = { vcpu: 1, memoryMib: 1024, diskGib: 10, hostname: 'stray', sshAuthorizedKeys: [] };
  const killed = await startReplica('reap:gone');
  world.host.addVm(first, 3, spec);
  assert.equal(await killed.ended, 'SIGKILL');
  world.host.addVm(second, 4, spec);
  const next = await startReplica();
  try {
    assert.deepEqual([...world.host.alive(first), ...world.host.alive(second)], []);
  } finally {
    await next.stop();
  }
});
