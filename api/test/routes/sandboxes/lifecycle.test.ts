// Sleep, wake and resize over HTTP, with the real durable work and a stand-in host.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { SELF_HOSTED_PLAN } from '@berth/contract/billing/plans.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { settled } from '../../world/settled.ts';
import { deadlineOf, until, untilTrue } from '../../../../os/test/until.ts';

let api: TestApi;
before(async () => {
  api = await startApi({
    durable: true,
    plans: [{ ...SELF_HOSTED_PLAN, id: 'tight', name: 'Tight', concurrentSandboxes: 1, largestSize: 'medium' }],
  });
});
after(() => api.close());
afterEach(() => api.host.calm());

const create = async (body: object = {}): Promise<string> => {
  const answer = await settled(api, () =>
    api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, {
      body: { agent: 'agent_one', projectId: api.projectId, ...body },
    }),
  );
  assert.equal(answer.body.sandbox.status, 'ready', JSON.stringify(answer.body));
  return answer.body.sandbox.id;
};
/** Returns the first response, even during a transition. */
const begin = (id: string, name: string, body?: object, headers: Record<string, string> = {}): Promise<Answer> =>
  api.call('POST', `/v1/sandboxes/${id}/${name}`, { headers, ...(body === undefined ? {} : { body }) });
const beginAtOnce = (id: string, name: string, body?: object): Promise<Answer> =>
  begin(id, name, body, { prefer: 'respond-async' });
const verb = (id: string, name: string, body?: object): Promise<Answer> => settled(api, () => begin(id, name, body));
const get = async (id: string): Promise<Answer['body']> => (await api.call('GET', `/v1/sandboxes/${id}`)).body.sandbox;

test('a sleep returns stopped and its wake source, repeatedly; a wake returns ready and how it woke', async () => {
  const id = await create();
  const first = await verb(id, 'sleep');
  assert.deepEqual(
    [first.status, first.body.sandbox.status, first.body.sandbox.wakesFrom],
    [200, 'stopped', 'snapshot'],
  );
  assert.deepEqual((await verb(id, 'sleep', {})).body, first.body);
  const woken = await verb(id, 'wake');
  assert.deepEqual([woken.status, woken.body.sandbox.status, woken.body.sandbox.wakesFrom], [200, 'ready', null]);
  assert.deepEqual([woken.body.sandbox.lastWake.from, woken.body.sandbox.lastWake.reason], ['snapshot', null]);
  assert.deepEqual(await get(id), woken.body.sandbox);
});

test('a wake during a sleep waits for the snapshot, within the same limit as any wait', async () => {
  const id = await create();
  api.host.sleepMs = 500;
  assert.equal((await beginAtOnce(id, 'sleep')).body.sandbox.status, 'sleeping');
  const woken = await begin(id, 'wake');
  assert.equal(woken.status, 200, JSON.stringify(woken.body));
  assert.match(woken.body.sandbox.status, /^(waking|ready)$/);
  const slow = await create();
  api.host.sleepMs = 60_000;
  await beginAtOnce(slow, 'sleep');
  for (const early of [await beginAtOnce(slow, 'wake'), await begin(slow, 'wake')]) {
    assert.deepEqual([early.status, early.body.error.code], [400, 'wake_not_possible']);
    assert.match(early.body.error.message, /is sleeping .*it must be stopped or failed/);
  }
});

test('forty wakes during a sleep all succeed and start one wake', async () => {
  const id = await create();
  api.host.sleepMs = 500;
  await beginAtOnce(id, 'sleep');
  const wakeOnce = (): Promise<Answer> =>
    until('the wake begins', async () => {
      const woken = await begin(id, 'wake');
      if (woken.status === 200) return woken;
      // On a busy computer the snapshot can take longer than a wake waits.
      assert.equal(woken.body.error.code, 'wake_not_possible', JSON.stringify(woken.body));
      return null;
    });
  await Promise.all(Array.from({ length: 40 }, wakeOnce));
  await settled(api, () => begin(id, 'sleep'));
  const requested = await api.db
    .selectFrom('activity')
    .select('kind')
    .where('sandbox_id', '=', id)
    .where('kind', '=', 'sandbox_wake_requested')
    .execute();
  assert.equal(requested.length, 1);
});

test('the deprecated aliases act like their successors', async () => {
  const id = await create();
  assert.equal((await verb(id, 'stop')).body.sandbox.status, 'stopped');
  assert.equal((await verb(id, 'resume')).body.sandbox.status, 'ready');
});

for (const [name, slow, before, meanwhile] of [
  ['sleep', 'sleepMs', null, 'sleeping'],
  ['wake', 'wakeMs', 'sleep', 'waking'],
  ['resize', 'resizeMs', null, 'ready'],
] as const) {
  test(`a ${name} returns at once with respond-async, and the true status after the maximal wait`, async () => {
    const id = await create();
    if (before !== null) await verb(id, before);
    api.host[slow] = 60_000;
    const body = name === 'resize' ? { vcpu: 2 } : undefined;
    const first = await beginAtOnce(id, name, body);
    assert.deepEqual(
      [first.status, first.headers.get('preference-applied'), first.body.sandbox.status],
      [200, 'respond-async', meanwhile],
    );
    const id2 = await create();
    if (before !== null) {
      api.host.sleepMs = 0;
      await verb(id2, before);
    }
    const second = await begin(id2, name, body);
    assert.deepEqual(
      [second.status, second.headers.get('preference-applied'), second.body.sandbox.status],
      [200, null, meanwhile],
    );
    if (name === 'resize')
      assert.deepEqual(second.body.sandbox.pendingAllocation, { vcpu: 2, memoryGb: 1, diskGb: 10 });
  });
}

test('a live resize applies in the guest, keeps unspecified amounts and leaves nothing pending', async () => {
  const id = await create();
  const { sandbox } = (await verb(id, 'resize', { memoryGb: 4, diskGb: 30 })).body;
  assert.deepEqual(
    [sandbox.allocated_vcpu, sandbox.allocated_memory_gb, sandbox.allocated_disk_gb, sandbox.pendingAllocation],
    [1, 4, 30, undefined],
  );
  assert.deepEqual(api.host.vm(id)?.spec, { ...api.host.vm(id)?.spec, vcpu: 1, memoryMib: 4_096, diskGib: 30 });
});

test('a resize of a stopped sandbox needs no step and is used by the next wake', async () => {
  const id = await create();
  await verb(id, 'sleep');
  api.host.calls.length = 0;
  const { sandbox } = (await verb(id, 'resize', { vcpu: 4, memoryGb: 2 })).body;
  assert.deepEqual(
    [sandbox.status, sandbox.allocated_vcpu, sandbox.allocated_memory_gb, sandbox.pendingAllocation],
    ['stopped', 4, 2, undefined],
  );
  assert.deepEqual(api.host.calls, []);
  await verb(id, 'wake');
  assert.equal(api.host.vm(id)?.spec?.vcpu, 4);
});

test('a decrease is stored until the next wake; a resize to the current size clears it', async () => {
  const id = await create({ machineSize: 'medium' });
  const shrunk = (await verb(id, 'resize', { vcpu: 1 })).body.sandbox;
  assert.deepEqual([shrunk.allocated_vcpu, shrunk.pendingAllocation], [2, { vcpu: 1, memoryGb: 4, diskGb: 20 }]);
  api.host.calls.length = 0;
  const same = (await verb(id, 'resize', { vcpu: 2, memoryGb: 4, diskGb: 20 })).body.sandbox;
  assert.deepEqual([same.pendingAllocation, api.host.calls], [undefined, []]);
  await verb(id, 'resize', { vcpu: 1 });
  await verb(id, 'sleep');
  const { sandbox } = (await verb(id, 'wake')).body;
  assert.deepEqual([sandbox.allocated_vcpu, sandbox.pendingAllocation], [1, undefined]);
});

test("a smaller disk and a size above the host's maximum are 400 naming the bound", async () => {
  const id = await create();
  for (const [body, message] of [
    [{ diskGb: 9 }, /body\.diskGb must be at least 10, its current size/],
    [{ vcpu: 65 }, /65 vCPU exceeds the 64 that its host can give one VM/],
    [{ memoryGb: 1_000 }, /1024000 MiB of memory exceeds the 1000000/],
  ] as const) {
    const answer = await verb(id, 'resize', body);
    assert.deepEqual([answer.status, answer.body.error.code], [400, 'allocation_out_of_bounds']);
    assert.match(answer.body.error.message, message);
  }
  for (const [body, message] of [
    [{}, /must have at least one of vcpu, memoryGb, diskGb/],
    [{ vcpu: 0 }, /body\.vcpu must be at least 1, not 0/],
    [{ vcpu: 1.5 }, /body\.vcpu must be/],
    [{ cpus: 2 }, /body\.cpus: unknown field/],
  ] as const) {
    const answer = await verb(id, 'resize', body);
    assert.deepEqual([answer.status, answer.body.error.code], [400, 'invalid_request']);
    assert.match(answer.body.error.message, message);
  }
  assert.equal((await get(id)).pendingAllocation, undefined);
});

test('a disk without host capacity is refused while asleep and deferred to a wake while awake', async () => {
  const id = await create();
  const { capacity } = api.host;
  const untilHostHas = async (diskGib: number): Promise<void> => {
    const deadline = Date.now() + deadlineOf(15_000);
    const known = () => api.db.selectFrom('host').select('capacity_disk_gib').executeTakeFirstOrThrow();
    for (; (await known()).capacity_disk_gib !== diskGib; await delay(20))
      assert.ok(Date.now() < deadline, 'the host was not looked at');
  };
  const awake = (await verb(id, 'resize', { diskGb: 90_000 })).body.sandbox;
  assert.equal(awake.allocated_disk_gb, 90_000);
  await verb(id, 'sleep');
  // The host's capacity decreases.
  api.host.capacity = { ...capacity, diskGib: 90_500 };
  try {
    await untilHostHas(90_500);
    const refused = await verb(id, 'resize', { diskGb: 99_000 });
    assert.equal(refused.body.error?.code, 'insufficient_capacity', JSON.stringify(refused.body));
    assert.equal((await get(id)).allocated_disk_gb, 90_000);
    await verb(id, 'destroy');
  } finally {
    api.host.capacity = capacity;
    await untilHostHas(capacity.diskGib);
  }
});

test("a resize above the plan's size is 409 plan_limit, a wake above its concurrency 409", async () => {
  const id = await create();
  await verb(id, 'sleep');
  const other = await create();
  await api.db.updateTable('subscription').set({ plan: 'tight' }).where('org_id', '=', api.orgId).execute();
  try {
    const larger = await verb(id, 'resize', { vcpu: 4 });
    assert.deepEqual([larger.status, larger.body.error.code], [409, 'plan_limit']);
    const woken = await verb(id, 'wake');
    assert.deepEqual([woken.status, woken.body.error.code], [409, 'concurrent_sandbox_limit']);
    await api.db.updateTable('subscription').set({ status: 'canceled' }).where('org_id', '=', api.orgId).execute();
    assert.equal((await verb(id, 'wake')).body.error.code, 'no_active_plan');
    assert.equal((await verb(other, 'resize', { vcpu: 2 })).body.error.code, 'no_active_plan');
    assert.equal((await get(id)).status, 'stopped');
  } finally {
    await api.db
      .updateTable('subscription')
      .set({ plan: 'self-hosted', status: 'active' })
      .where('org_id', '=', api.orgId)
      .execute();
  }
});

test('a resize in progress differs from one that waits for the next wake', async () => {
  const id = await create();
  const shown = (sandbox: Answer['body']): unknown[] => [
    sandbox.allocated_vcpu,
    sandbox.pendingAllocation?.vcpu,
    sandbox.resizing,
  ];
  api.host.resizeMs = 60_000;
  assert.deepEqual(shown((await beginAtOnce(id, 'resize', { vcpu: 4 })).body.sandbox), [1, 4, true]);
  await untilTrue('it reached the host', () => api.host.calls.some((call) => call.verb === 'resize' && call.id === id));
  api.host.finish('resize');
  await untilTrue('it is done', async () => !(await get(id)).resizing);
  assert.deepEqual(shown(await get(id)), [4, undefined, false]);
  assert.deepEqual(shown((await verb(id, 'resize', { vcpu: 2 })).body.sandbox), [4, 2, false]);
});

test('a new resize target replaces the one in progress', async () => {
  const id = await create();
  api.host.resizeMs = 300;
  await beginAtOnce(id, 'resize', { vcpu: 4 });
  const { sandbox } = (await verb(id, 'resize', { vcpu: 8 })).body;
  assert.deepEqual([sandbox.allocated_vcpu, sandbox.pendingAllocation], [8, undefined]);
});

test('commands keep working during a live resize', async () => {
  const id = await create();
  api.front.exec = () =>
    Promise.resolve({ exitCode: 0, stdout: 'here', stderr: '', truncated: false, timedOut: false });
  api.host.resizeMs = 1_000;
  await beginAtOnce(id, 'resize', { vcpu: 4 });
  assert.equal((await begin(id, 'exec', { command: 'true' })).body.stdout, 'here');
});
