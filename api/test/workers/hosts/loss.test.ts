// Dead VMs, silent and returning hosts: sandbox status, metering, wake sources.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { VmSpec } from '@berth/protocol/host.ts';
import { sql } from 'kysely';
import { HostStandIn } from '../../world/host-stand-in.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import type { Replica } from '../replica.ts';
import { openWorld, type World } from '../world.ts';

const HOST_SILENCE_MS = 1_000;

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.close());
afterEach(() => world.calm());

const startReplica = (options: Partial<typeof world.replica> = {}): Promise<Replica> =>
  world.start({ hostSilenceMs: HOST_SILENCE_MS, ...options });

/** Ends of the sandbox's intervals, in milliseconds since 1970; null for one that is open. */
const endsOf = async (id: string): Promise<(number | null)[]> => {
  const { rows } = await sql<{ to: Date | null }>`
    select upper(during) as to from usage_interval where sandbox_id = ${id} order by lower(during)`.execute(world.db);
  return rows.map(({ to }) => to?.getTime() ?? null);
};
const kindsOf = async (id: string): Promise<string[]> =>
  (
    await world.db
      .selectFrom('activity')
      .select('kind')
      .where('sandbox_id', '=', id)
      .orderBy('at')
      .orderBy('seq')
      .execute()
  ).map(({ kind }) => kind);

for (const [deathCode, sentence] of [
  ['out_of_memory', /^its host ran out of memory and killed its VM\. /],
  ['guest_panic', /^its guest's kernel panicked\. /],
  ['guest_shutdown', /^its guest shut down\. /],
  ['guest_reboot', /^its guest rebooted, which ends the VM/],
  ['qemu_crash', /^its virtual machine monitor crashed\. /],
  ['process_ended', /^the process of its VM exited\. /],
] as const) {
  test(`a VM death by ${deathCode} fails its sandbox, ends metering at its last life, keeps its disk`, async () => {
    const replica = await startReplica();
    const { id } = await replica.ask('create');
    const lastAliveUnixMs = Date.now();
    await delay(60);
    world.host.killVm(id, 'as its host saw it', { deathCode, lastAliveUnixMs });
    const row = await world.until(id, ({ status }) => status === 'failed');
    assert.deepEqual([row.status_reason_code, row.wakes_from], [deathCode, 'disk']);
    assert.match(row.status_reason_message ?? '', sentence);
    assert.deepEqual(await endsOf(id), [lastAliveUnixMs]);
    // The disk was left alone and can be woken.
    assert.equal((await replica.ask('wake', { sandboxId: id })).status, 'ready');
    assert.equal((await world.until(id, () => true)).last_wake_from, 'disk');
    assert.equal(
      world.host.calls.some(({ verb, id: called }) => verb === 'DELETE' && called === id),
      false,
    );
  });
}

test('a last proof of life outside the metered time is moved into it', async () => {
  const replica = await startReplica();
  for (const lastAliveUnixMs of [1_000, Date.now() + 3_600_000]) {
    const { id } = await replica.ask('create');
    const startedAt = Date.now();
    world.host.killVm(id, 'x', { lastAliveUnixMs });
    await world.until(id, ({ status }) => status === 'failed');
    const [end] = await endsOf(id);
    assert.ok(end !== null && end !== undefined && end > startedAt - 60_000 && end <= Date.now(), String(end));
  }
});

test('a dead VM without a disk leaves no wake source, and its remains are removed', async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  world.host.killVm(id, 'its disk is gone', { keeps: 'nothing' });
  const row = await world.until(id, ({ status }) => status === 'failed');
  assert.equal(row.wakes_from, null);
  await untilTrue('it was removed', () => world.host.vm(id) === undefined);
  await assert.rejects(replica.ask('wake', { sandboxId: id }), /neither a snapshot nor a disk to wake from/);
});

test('an awake or asleep sandbox missing at its host fails, each with its own code', async () => {
  const replica = await startReplica();
  const [awake, asleep] = [await replica.ask('create'), await replica.ask('create')];
  await replica.ask('sleep', { sandboxId: asleep.id });
  for (const { id } of [awake, asleep]) world.host.forgetVm(id);
  const lost = await world.until(awake.id, ({ status }) => status === 'failed');
  const gone = await world.until(asleep.id, ({ status }) => status === 'failed');
  assert.deepEqual([lost.status_reason_code, lost.wakes_from], ['machine_lost', null]);
  assert.deepEqual([gone.status_reason_code, gone.wakes_from], ['disk_lost', null]);
});

test('an awake sandbox whose host put its VM to sleep wakes, and the time asleep is not metered', async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  world.host.setVm(id, { status: 'asleep', keeps: 'snapshot' });
  await world.until(id, ({ epoch, status }) => epoch === 2 && status === 'ready');
  assert.deepEqual((await kindsOf(id)).slice(-3), ['sandbox_stopped', 'sandbox_wake_requested', 'sandbox_woken']);
  const [before, after] = await endsOf(id);
  assert.deepEqual([before === null, after], [false, null]);
});

test("a VM larger than its row updates the sandbox's size", async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  world.host.setVm(id, { spec: { vcpu: 2, memoryMib: 2_048, diskGib: 10, hostname: 'x', sshAuthorizedKeys: [] } });
  const row = await world.until(id, ({ allocated_vcpu: vcpu }) => vcpu === 2);
  assert.deepEqual([row.status, row.allocated_memory_gb], ['ready', 2]);
  assert.equal((await endsOf(id)).length, 2);
});

test('a silent host fails its awake sandboxes as of its last heartbeat and restores them on return', async () => {
  const replica = await startReplica();
  const [running, fallen, dead, slept] = [
    await replica.ask('create'),
    await replica.ask('create'),
    await replica.ask('create'),
    await replica.ask('create'),
  ];
  await replica.ask('sleep', { sandboxId: slept.id });
  const madeAt = Date.now();
  await untilTrue('the host was seen since', async () => {
    const { last_seen_at: seen } = await world.db.selectFrom('host').select('last_seen_at').executeTakeFirstOrThrow();
    return seen.getTime() > madeAt;
  });
  await world.host.stop();
  const { last_seen_at: seenAt } = await world.db.selectFrom('host').select('last_seen_at').executeTakeFirstOrThrow();
  for (const { id } of [running, fallen, dead]) {
    const row = await world.until(id, ({ status }) => status === 'failed');
    assert.deepEqual([row.status_reason_code, row.wakes_from], ['host_lost', 'disk']);
    const [end] = await endsOf(id);
    assert.ok(end !== null && end !== undefined && end <= seenAt.getTime() + 1, `${end} after ${seenAt.getTime()}`);
  }
  assert.equal((await world.until(slept.id, () => true)).status, 'stopped');

  world.host.setVm(fallen.id, { status: 'asleep', keeps: 'snapshot' });
  world.host.killVm(dead.id, 'oom-killer', { deathCode: 'out_of_memory' });
  await world.host.start();
  await world.until(running.id, ({ status }) => status === 'ready');
  await world.until(fallen.id, ({ status }) => status === 'stopped');
  const row = await world.until(dead.id, ({ status_reason_code: code }) => code === 'out_of_memory');
  assert.deepEqual([row.status, row.wakes_from], ['failed', 'disk']);
  assert.equal((await kindsOf(running.id)).at(-1), 'sandbox_recovered');
  assert.deepEqual([(await endsOf(running.id)).length, (await endsOf(running.id)).at(-1)], [2, null]);
  assert.equal((await replica.ask('destroy', { sandboxId: running.id })).status, 'deleted');
});

test('an asleep sandbox missing from its host for a while is kept and wakes from its snapshot', async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  await replica.ask('sleep', { sandboxId: id });
  const { epoch, spec } = world.host.vm(id) as { epoch: number; spec: VmSpec };
  world.host.forgetVm(id);
  const lost = await world.until(id, ({ status }) => status === 'failed');
  assert.deepEqual([lost.status_reason_code, lost.wakes_from], ['disk_lost', null]);
  world.host.addVm(id, epoch, spec, { status: 'asleep', keeps: 'snapshot' });
  await world.until(id, ({ status }) => status === 'stopped');
  assert.equal((await kindsOf(id)).at(-1), 'sandbox_recovered');
  assert.equal((await replica.ask('wake', { sandboxId: id })).status, 'ready');
  assert.ok(!world.host.calls.some((call) => call.verb === 'DELETE' && call.id === id));
});

test("a resize requested during the host's silence is pending when the VM returns unchanged", async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  await world.host.stop();
  await world.until(id, ({ status }) => status === 'failed');
  await replica.ask('resize', { sandboxId: id, size: { vcpu: 2 } });
  await world.host.start();
  const row = await world.until(id, ({ status }) => status === 'ready');
  assert.deepEqual([row.allocated_vcpu, row.pending_vcpu], [1, 2]);
  await replica.ask('destroy', { sandboxId: id });
});

test('a service that was down itself declares no host lost at its start', async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  await replica.stop();
  await sql`update host set last_seen_at = now() - interval '1 hour'`.execute(world.db);
  await world.host.stop();
  const next = await startReplica({ hostSilenceMs: 3_000 });
  await untilTrue('it was missed', () => next.log.includes('host does not respond'));
  await world.host.start();
  await untilTrue('it was seen again', async () => {
    const { rows } = await sql<{
      seen: boolean;
    }>`select last_seen_at > now() - interval '5 seconds' as seen from host`.execute(world.db);
    return rows[0]?.seen === true;
  });
  assert.deepEqual([(await world.until(id, () => true)).status, await endsOf(id)], ['ready', [null]]);
});

test('a host with unintelligible responses is not silent: nothing on it is lost', async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  const { capacity } = world.host;
  world.host.capacity = { ...capacity, vcpu: 0.5 };
  await untilTrue('it was said', () => replica.log.includes('host does not respond'));
  const [missedAt, looks] = [Date.now(), world.host.looks];
  await untilTrue('looks go on', () => Date.now() > missedAt + HOST_SILENCE_MS * 2 && world.host.looks > looks + 2);
  assert.equal((await world.until(id, () => true)).status, 'ready');
  world.host.capacity = capacity;
});

test('a VM with a newer epoch than its sandbox is left alone and logged once', async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  world.host.setVm(id, { epoch: 9 });
  await untilTrue('it was said', () => replica.log.includes('difference left unrepaired'));
  const { last_seen_at: seenAt } = await world.db.selectFrom('host').select('last_seen_at').executeTakeFirstOrThrow();
  await untilTrue('two more looks', async () => {
    const { last_seen_at: now } = await world.db.selectFrom('host').select('last_seen_at').executeTakeFirstOrThrow();
    return now.getTime() > seenAt.getTime() + 1_500;
  });
  assert.equal(replica.log.split('difference left unrepaired').length, 2);
  assert.deepEqual([world.host.alive(id), (await world.until(id, () => true)).status], [[id], 'ready']);
  assert.equal((await replica.ask('destroy', { sandboxId: id })).status, 'deleted');
});

test('a new host at the address of an old one does not inherit its sandboxes: they are lost', async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  await world.host.stop();
  const other = new HostStandIn(world.host.url.slice('unix:'.length), 'host-put-in-its-place');
  await other.start();
  try {
    const row = await world.until(id, ({ status }) => status === 'failed');
    assert.equal(row.status_reason_code, 'host_lost');
  } finally {
    await other.stop();
    await world.host.start();
  }
  await world.until(id, ({ status }) => status === 'ready');
});
