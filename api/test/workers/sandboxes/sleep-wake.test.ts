// Sleep, wake and live resize through the real services and durable work in a separate process,
// with a real PostgreSQL and a stand-in host.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { sql } from 'kysely';
import { untilTrue } from '../../../../os/test/until.ts';
import { failureOf, NO_SNAPSHOT } from '../../../src/rules/sandboxes/machine-death.ts';
import type { Replica } from '../replica.ts';
import { openWorld, type World } from '../world.ts';

const HOST_TIMEOUT_MS = 1_500;

let world: World;
before(async () => {
  world = await openWorld();
});
after(() => world.close());
afterEach(() => world.calm());

const startReplica = (options: Partial<typeof world.replica> = {}): Promise<Replica> =>
  world.start({ hostTimeoutMs: HOST_TIMEOUT_MS, ...options });

async function makeStopped(replica: Replica): Promise<string> {
  const { id } = await replica.ask('create');
  assert.equal((await replica.ask('sleep', { sandboxId: id })).status, 'stopped');
  return id;
}

const activityOf = async (id: string): Promise<{ kind: string; details: Record<string, unknown> }[]> =>
  await world.db
    .selectFrom('activity')
    .select(['kind', 'details'])
    .where('sandbox_id', '=', id)
    .orderBy('at')
    .orderBy('id')
    .execute();
const kindsOf = async (id: string): Promise<string[]> => (await activityOf(id)).map(({ kind }) => kind);
const intervalsOf = async (id: string) =>
  await world.db
    .selectFrom('usage_interval')
    .select([
      'vcpu',
      'memory_gb',
      sql<boolean>`upper_inf(during)`.as('open'),
      sql<string>`lower(during)::text`.as('from'),
      sql<string>`upper(during)::text`.as('to'),
    ])
    .where('sandbox_id', '=', id)
    .orderBy(sql`lower(during)`)
    .execute();

test('a sleep and a wake are one host call each, with the epoch of their intents', async () => {
  const replica = await startReplica();
  const id = await makeStopped(replica);
  assert.equal((await replica.ask('wake', { sandboxId: id })).status, 'ready');
  assert.deepEqual(
    world.host.calls.filter((call) => call.id === id).map(({ verb, epoch }) => [verb, epoch]),
    [
      ['PUT', 1],
      ['sleep', 2],
      ['wake', 3],
    ],
  );
  const row = await world.until(id, () => true);
  assert.deepEqual([row.wakes_from, row.last_wake_from, row.last_wake_reason], [null, 'snapshot', null]);
  const intervals = await intervalsOf(id);
  assert.deepEqual(
    intervals.map(({ open }) => open),
    [false, true],
  );
  const woken = (await activityOf(id)).at(-1);
  assert.deepEqual([woken?.kind, woken?.details['woke']], ['sandbox_woken', { from: 'snapshot', reason: null }]);
});

test('a sleep requested again during or after a sleep is one sleep', async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  world.host.sleepMs = 200;
  const answers = await Promise.all([1, 2, 3].map(() => replica.ask('sleep', { sandboxId: id })));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set(['stopped']));
  assert.equal((await replica.ask('sleep', { sandboxId: id })).status, 'stopped');
  assert.equal(world.host.calls.filter(({ verb }) => verb === 'sleep').length, 1);
});

test('a wake requested again during a wake is one wake', async () => {
  const replica = await startReplica();
  const id = await makeStopped(replica);
  world.host.wakeMs = 200;
  const answers = await Promise.all([1, 2, 3].map(() => replica.ask('wake', { sandboxId: id })));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set(['ready']));
  assert.equal(world.host.woken.get(id), 1);
});

test('a VM that cannot be captured keeps running, stays metered and has the reason', async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  world.host.refuseSleeps.push({ code: 'sleep_failed', message: 'the disk is full' });
  assert.equal((await replica.ask('sleep', { sandboxId: id })).status, 'ready');
  const row = await world.until(id, () => true);
  assert.deepEqual(
    [row.status_reason_code, row.status_reason_message, row.wakes_from],
    ['sleep_failed', failureOf('sleep_failed').message, null],
  );
  assert.deepEqual((await kindsOf(id)).slice(-2), ['sandbox_sleep_requested', 'sandbox_sleep_failed']);
  assert.deepEqual(
    (await intervalsOf(id)).map(({ open }) => open),
    [false, true],
  );
  assert.equal((await replica.ask('sleep', { sandboxId: id })).status, 'stopped');
});

test('a sandbox whose VM is dead at its sleep fails with the reason and wakes from its disk', async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  world.host.sleepMs = 100;
  const sleeping = replica.ask('sleep', { sandboxId: id });
  await untilTrue('the sleep reached the host', () => world.host.calls.some(({ verb }) => verb === 'sleep'));
  world.host.refuseSleeps.push({ code: 'vm_not_running', message: 'the VM is dead' });
  world.host.loseAnswers.push('sleep');
  world.host.killVm(id, 'Kernel panic', { deathCode: 'guest_panic' });
  assert.equal((await sleeping).status, 'failed');
  const row = await world.until(id, () => true);
  assert.deepEqual([row.status_reason_code, row.wakes_from], ['guest_panic', 'disk']);
  assert.equal((await replica.ask('wake', { sandboxId: id })).status, 'ready');
  const woken = await world.until(id, () => true);
  assert.deepEqual([woken.last_wake_from, woken.last_wake_reason], ['disk', NO_SNAPSHOT]);
});

test('an unusable snapshot falls back to a disk boot, as sandbox and feed record', async () => {
  const replica = await startReplica();
  const id = await makeStopped(replica);
  world.host.setVm(id, { keeps: 'disk', reason: 'its snapshot is of no use: a hash differs' });
  assert.equal((await replica.ask('wake', { sandboxId: id })).status, 'ready');
  const row = await world.until(id, () => true);
  assert.deepEqual([row.last_wake_from, row.last_wake_reason], ['disk', NO_SNAPSHOT]);
  assert.deepEqual((await activityOf(id)).at(-1)?.details['woke'], { from: 'disk', reason: NO_SNAPSHOT });
});

test('a failed wake leaves the sandbox stopped with the reason, and it can be woken again', async () => {
  const replica = await startReplica();
  const id = await makeStopped(replica);
  world.host.refuseWakes.push({ code: 'wake_failed', message: 'the template is missing' });
  assert.equal((await replica.ask('wake', { sandboxId: id })).status, 'stopped');
  const row = await world.until(id, () => true);
  assert.deepEqual(
    [row.status_reason_code, row.status_reason_message, row.wakes_from],
    ['wake_failed', failureOf('wake_failed').message, 'snapshot'],
  );
  assert.equal((await kindsOf(id)).at(-1), 'sandbox_wake_failed');
  assert.equal((await replica.ask('wake', { sandboxId: id })).status, 'ready');
});

test('a VM that dies of its wake leaves the sandbox failed with what remains', async () => {
  const replica = await startReplica();
  const id = await makeStopped(replica);
  world.host.wakeMs = 100;
  world.host.loseAnswers.push('wake');
  const waking = replica.ask('wake', { sandboxId: id });
  await untilTrue('the wake reached the host', () => world.host.calls.some(({ verb }) => verb === 'wake'));
  world.host.killVm(id, 'it hung', { deathCode: 'wake_failed' });
  world.host.refuseWakes.push({ code: 'wake_failed', message: 'it hung' });
  assert.equal((await waking).status, 'failed');
  const row = await world.until(id, () => true);
  assert.deepEqual([row.status_reason_code, row.wakes_from], ['wake_failed', 'disk']);
});

test('a wake of a VM that its host no longer has fails for good', async () => {
  const replica = await startReplica();
  const id = await makeStopped(replica);
  world.host.refuseWakes.push({ code: 'nothing_to_wake', message: 'neither snapshot nor disk are here' });
  assert.equal((await replica.ask('wake', { sandboxId: id })).status, 'failed');
  const row = await world.until(id, () => true);
  assert.deepEqual([row.status_reason_code, row.wakes_from], ['disk_lost', null]);
  await assert.rejects(replica.ask('wake', { sandboxId: id }), /has neither a snapshot nor a disk to wake from/);
});

for (const verb of ['sleep', 'wake', 'resize'] as const) {
  test(`a ${verb} whose response is lost is done once`, async () => {
    const replica = await startReplica();
    const { id } = await replica.ask('create');
    if (verb === 'wake') await replica.ask('sleep', { sandboxId: id });
    world.host.loseAnswers.push(verb);
    const answer = await replica.ask(verb, { sandboxId: id, size: { vcpu: 4 } });
    assert.equal(answer.status, verb === 'sleep' ? 'stopped' : 'ready');
    assert.equal(world.host.calls.filter((call) => call.verb === verb).length, 2);
    assert.equal(world.host.woken.get(id) ?? 0, verb === 'wake' ? 1 : 0);
    assert.equal((await world.until(id, () => true)).allocated_vcpu, verb === 'resize' ? 4 : 1);
  });

  test(`a replica that stops during a ${verb} leaves it to the next`, async () => {
    const stopped = await startReplica();
    const { id } = await stopped.ask('create');
    if (verb === 'wake') await stopped.ask('sleep', { sandboxId: id });
    world.host.sleepMs = world.host.wakeMs = world.host.resizeMs = 60_000;
    await stopped.ask(verb, { sandboxId: id, size: { vcpu: 4 }, respondAsync: true });
    await untilTrue('it reached the host', () => world.host.calls.some((call) => call.verb === verb));
    await stopped.stop();
    const row = await world.until(id, () => true);
    assert.ok(row.resizing || row.status === 'sleeping' || row.status === 'waking', row.status);
    await startReplica();
    await untilTrue(
      'the next one asked the host',
      () => world.host.calls.filter((call) => call.verb === verb).length === 2,
    );
    world.host.sleepMs = world.host.wakeMs = world.host.resizeMs = 0;
    world.host.finish(verb);
    const settled = await world.until(
      id,
      ({ status, resizing }) => !resizing && (status === 'ready' || status === 'stopped'),
    );
    assert.equal(settled.status, verb === 'sleep' ? 'stopped' : 'ready');
  });

  test(`a destroy interrupts a ${verb} and leaves nothing`, async () => {
    const replica = await startReplica();
    const { id } = await replica.ask('create');
    if (verb === 'wake') await replica.ask('sleep', { sandboxId: id });
    world.host.sleepMs = world.host.wakeMs = world.host.resizeMs = 60_000;
    await replica.ask(verb, { sandboxId: id, size: { vcpu: 4 }, respondAsync: true });
    await untilTrue('it reached the host', () => world.host.calls.some((call) => call.verb === verb));
    assert.equal((await replica.ask('destroy', { sandboxId: id })).status, 'deleted');
    assert.equal(world.host.vm(id), undefined);
    assert.deepEqual((await kindsOf(id)).slice(-2), ['sandbox_destroy_requested', 'sandbox_deleted']);
    assert.ok((await intervalsOf(id)).every(({ open }) => !open));
  });

  test(`a ${verb} without a step row gets one`, async () => {
    const silent = await startReplica({ startAtOnce: false, queuePollMs: 600_000 });
    const maker = await startReplica();
    const { id } = await maker.ask('create');
    if (verb === 'wake') await maker.ask('sleep', { sandboxId: id });
    await maker.stop();
    const epoch = (await world.until(id, () => true)).epoch + 1;
    await silent.ask(verb, { sandboxId: id, size: { vcpu: 4 }, respondAsync: true });
    await world.db.deleteFrom('durable_step').where('id', '=', `${verb}:${id}:${epoch}`).execute();
    await sql`update sandbox set updated_at = now() - interval '1 minute' where id = ${id}`.execute(world.db);
    const settled = await world.until(
      id,
      ({ status, resizing }) => !resizing && (status === 'ready' || status === 'stopped'),
      30_000,
    );
    assert.equal(settled.status, verb === 'sleep' ? 'stopped' : 'ready');
  });
}

test("a sleep on a lost host fails as host_lost; the host's state is adopted on its return", async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  await world.host.stop();
  await replica.ask('sleep', { sandboxId: id, respondAsync: true });
  const row = await world.until(id, ({ status }) => status === 'failed');
  assert.deepEqual([row.status_reason_code, row.wakes_from, row.epoch], ['host_lost', 'disk', 3]);
  // The response was lost, not the request.
  world.host.setVm(id, { status: 'asleep', keeps: 'snapshot', epoch: 2 });
  await world.host.start();
  const stopped = await world.until(id, ({ status }) => status === 'stopped');
  assert.equal(stopped.wakes_from, 'snapshot');
  assert.equal((await replica.ask('wake', { sandboxId: id })).status, 'ready');
});

test('a wake on an absent host is abandoned, and a VM that it wakes later sleeps again', async () => {
  const replica = await startReplica();
  const id = await makeStopped(replica);
  await world.host.stop();
  await replica.ask('wake', { sandboxId: id, respondAsync: true });
  const row = await world.until(id, ({ status }) => status === 'stopped');
  assert.deepEqual([row.status_reason_code, row.wakes_from, row.epoch], ['wake_failed', 'snapshot', 4]);
  world.host.setVm(id, { status: 'running', epoch: 3 });
  await world.host.start();
  await untilTrue('it sleeps again', () => world.host.vm(id)?.status === 'asleep');
  assert.equal((await world.until(id, () => true)).status, 'stopped');
});

test('a live resize is verified before it counts, and splits the metered time at one instant', async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  world.host.resizeMs = 60_000;
  await replica.ask('resize', { sandboxId: id, size: { vcpu: 4, memoryGb: 8 }, respondAsync: true });
  await untilTrue('it reached the host', () => world.host.calls.some((call) => call.verb === 'resize'));
  const under = await world.until(id, () => true);
  assert.deepEqual([under.status, under.resizing, under.allocated_vcpu, under.pending_vcpu], ['ready', true, 1, 4]);
  world.host.finish('resize');
  const row = await world.until(id, ({ resizing }) => !resizing);
  assert.deepEqual([row.allocated_vcpu, row.allocated_memory_gb, row.pending_vcpu], [4, 8, null]);
  const [small, large] = await intervalsOf(id);
  assert.deepEqual([small?.vcpu, small?.open, large?.vcpu, large?.memory_gb, large?.open], [1, false, 4, 8, true]);
  assert.equal(small?.to, large?.from);
});

test('a failed live resize leaves the real allocation and the whole target for the next wake', async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  world.host.refuseResizes.push({ code: 'resize_failed', message: 'the guest did not bring vCPU 3 online' });
  await replica.ask('resize', { sandboxId: id, size: { vcpu: 4, memoryGb: 2 } });
  const row = await world.until(id, () => true);
  assert.deepEqual(
    [row.allocated_vcpu, row.allocated_memory_gb, row.pending_vcpu, row.pending_memory_gb],
    [1, 1, 4, 2],
  );
  const deferred = (await activityOf(id)).at(-1);
  assert.equal(deferred?.kind, 'sandbox_resize_deferred');
  assert.deepEqual(deferred?.details['reason'], failureOf('resize_failed'));
  assert.equal((await intervalsOf(id)).length, 1);

  await replica.ask('sleep', { sandboxId: id });
  await replica.ask('wake', { sandboxId: id });
  const woken = await world.until(id, () => true);
  assert.deepEqual(
    [woken.status, woken.allocated_vcpu, woken.allocated_memory_gb, woken.pending_vcpu],
    ['ready', 4, 2, null],
  );
});

test('a decrease waits for the next wake, an increase does not; a refusing guest keeps it pending', async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  await replica.ask('resize', { sandboxId: id, size: { vcpu: 4, memoryGb: 4 } });
  await replica.ask('resize', { sandboxId: id, size: { vcpu: 2, memoryGb: 6 } });
  const row = await world.until(id, () => true);
  assert.deepEqual(
    [row.allocated_vcpu, row.allocated_memory_gb, row.pending_vcpu, row.pending_memory_gb],
    [4, 6, 2, 6],
  );

  world.host.guestHoldsOn = true;
  await replica.ask('sleep', { sandboxId: id });
  await replica.ask('wake', { sandboxId: id });
  const held = await world.until(id, () => true);
  assert.deepEqual([held.allocated_vcpu, held.pending_vcpu], [4, 2]);
  // Rows of one transaction have one time.
  assert.ok((await kindsOf(id)).slice(-2).includes('sandbox_resize_deferred'));

  world.host.guestHoldsOn = false;
  await replica.ask('sleep', { sandboxId: id });
  await replica.ask('wake', { sandboxId: id });
  const woken = await world.until(id, () => true);
  assert.deepEqual([woken.allocated_vcpu, woken.allocated_memory_gb, woken.pending_vcpu], [2, 6, null]);
});

test("a stopped sandbox's decrease stays pending until a guest releases the amount", async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  await replica.ask('resize', { sandboxId: id, size: { vcpu: 4, memoryGb: 4 } });
  await replica.ask('sleep', { sandboxId: id });
  await replica.ask('resize', { sandboxId: id, size: { vcpu: 2, memoryGb: 2 } });
  const asleep = await world.until(id, () => true);
  assert.deepEqual([asleep.allocated_vcpu, asleep.allocated_memory_gb, asleep.pending_vcpu], [2, 2, null]);

  world.host.guestHoldsOn = true;
  await replica.ask('wake', { sandboxId: id });
  const held = await world.until(id, () => true);
  assert.deepEqual(
    [held.allocated_vcpu, held.allocated_memory_gb, held.pending_vcpu, held.pending_memory_gb],
    [4, 4, 2, 2],
  );
  assert.deepEqual((await intervalsOf(id)).at(-1)?.vcpu, 4);
  // Rows of one transaction have one time.
  assert.ok((await kindsOf(id)).slice(-2).includes('sandbox_resize_deferred'));

  world.host.guestHoldsOn = false;
  await replica.ask('sleep', { sandboxId: id });
  await replica.ask('wake', { sandboxId: id });
  const woken = await world.until(id, () => true);
  assert.deepEqual([woken.allocated_vcpu, woken.allocated_memory_gb, woken.pending_vcpu], [2, 2, null]);
});

test('an increase that is cancelled but still happens becomes a pending decrease', async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  world.host.resizeMs = 60_000;
  await replica.ask('resize', { sandboxId: id, size: { vcpu: 4, diskGb: 20 }, respondAsync: true });
  await untilTrue('it reached the host', () => world.host.calls.some((call) => call.verb === 'resize'));
  await replica.ask('resize', { sandboxId: id, size: { vcpu: 1, diskGb: 10 }, respondAsync: true });
  world.host.finish('resize');
  const row = await world.until(id, ({ allocated_vcpu: vcpu }) => vcpu === 4);
  // The disk that has grown never shrinks.
  assert.deepEqual([row.allocated_disk_gb, row.pending_vcpu, row.pending_disk_gb], [20, 1, 20]);
});

test('a sleep interrupts a resize; the changes the host made are in force', async () => {
  const replica = await startReplica();
  const { id } = await replica.ask('create');
  world.host.resizeMs = 60_000;
  await replica.ask('resize', { sandboxId: id, size: { vcpu: 4 }, respondAsync: true });
  await untilTrue('it reached the host', () => world.host.calls.some((call) => call.verb === 'resize'));
  assert.equal((await replica.ask('sleep', { sandboxId: id, respondAsync: true })).status, 'sleeping');
  await untilTrue('the sleep reached the host', () => world.host.calls.some((call) => call.verb === 'sleep'));
  world.host.finish('resize');
  const row = await world.until(id, ({ status }) => status === 'stopped');
  // The host had grown the VM before the sleep and reports it: nothing is pending.
  assert.deepEqual([row.allocated_vcpu, row.pending_vcpu, row.resizing], [4, null, false]);
  await replica.ask('wake', { sandboxId: id });
  const woken = await world.until(id, () => true);
  assert.deepEqual([woken.allocated_vcpu, woken.pending_vcpu], [4, null]);
});
