// Metrics over HTTP with a scripted host: values of a hostile guest, stored samples,
// recommendations for the next wake.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { MetricsSample } from '@berth/contract/metrics/metrics.ts';
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';
import type { VmMetrics } from '@berth/protocol/calls/metrics.ts';
import { sql } from 'kysely';
import { insertMetricsSample } from '../../../src/store/metrics/samples.ts';
import { transitionSandbox } from '../../../src/services/sandboxes/transition.ts';
import { writeSandboxSize } from '../../../src/store/sandboxes/sandboxes.ts';
import type { NewSandbox, SandboxRow } from '../../../src/store/database/schema.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';

const MODEST: Plan = {
  ...SELF_HOSTED_PLAN,
  id: 'modest',
  name: 'Modest',
  tier: 'standard',
  concurrentSandboxes: null,
  largestSize: 'medium',
  ephemeralSessionSeconds: null,
};

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false, plans: [MODEST] });
});
after(() => api.close());
beforeEach(() => {
  api.front.metrics = () => metrics();
});

type Guest = VmMetrics['guest'];

function metrics(guest: Partial<Guest> = {}): VmMetrics {
  return {
    sampledAtUnixMs: Date.now(),
    guest: {
      uptimeSeconds: 100,
      vcpu: 1,
      cpuBusyMs: 5_000,
      load: [0.5, 0.25, 0.125],
      memoryTotalMib: 1_000,
      memoryUsedMib: 250,
      diskTotalMib: 10_000,
      diskUsedMib: 2_000,
      networkInBytes: 11,
      networkOutBytes: 22,
      processes: 33,
      ...guest,
    },
    host: { cpuMs: 7_500, residentMib: 300, unsharedMib: 60, diskUsedMib: 70, networkInBytes: 44, networkOutBytes: 55 },
  };
}

const auto = (changed: Partial<NewSandbox> = {}): Promise<SandboxRow> =>
  api.makeSandbox('ready', { profile: 'auto', ...changed });
const live = (id: string): Promise<Answer> => api.call('GET', `/v1/sandboxes/${id}/metrics/live`);
const sample = async (id: string): Promise<MetricsSample> => {
  const answer = await api.call('POST', `/v1/sandboxes/${id}/metrics/sample`);
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body.sample as MetricsSample;
};
const rowOf = (id: string): Promise<SandboxRow> =>
  api.db.selectFrom('sandbox').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
const pendingOf = async (id: string): Promise<unknown> =>
  (await api.call('GET', `/v1/sandboxes/${id}`)).body.sandbox.pendingAllocation;
const rowsOf = (id: string) =>
  api.db.selectFrom('metrics_sample').selectAll().where('sandbox_id', '=', id).orderBy('at').execute();

/** Inserts a past sample. */
async function insertPast(
  id: string,
  minutesAgo: number,
  used: { cpu?: number | null; memory?: number; busyMs?: number; uptime?: number } = {},
) {
  await api.db.transaction().execute(async (trx) => {
    const row = await insertMetricsSample(trx, {
      sandboxId: id,
      uptimeSeconds: used.uptime ?? 1,
      cpuBusyMs: used.busyMs ?? 0,
      allocation: { vcpu: 1, memoryGb: 1, diskGb: 10 },
      cpuUsed: used.cpu ?? null,
      memoryUsed: used.memory ?? 0.2,
      diskUsed: 0.2,
    });
    await sql`update metrics_sample set at = now() - ${minutesAgo} * interval '1 minute' where id = ${row.id}`.execute(
      trx,
    );
  });
}

test('live metrics show guest and host measurements, with units in the field names', async () => {
  const { id } = await auto();
  const { body } = await live(id);
  assert.deepEqual(
    { ...body.metrics, sampledAt: '' },
    {
      sampledAt: '',
      guest: {
        uptimeSeconds: 100,
        cpu: { vcpu: 1, usedPercent: null, busySeconds: 5 },
        load: { oneMinute: 0.5, fiveMinutes: 0.25, fifteenMinutes: 0.125 },
        memory: { totalMib: 1_000, usedMib: 250, usedPercent: 25 },
        disk: { totalMib: 10_000, usedMib: 2_000, usedPercent: 20 },
        network: { receivedBytes: 11, sentBytes: 22 },
        processCount: 33,
      },
      host: {
        cpuSeconds: 7.5,
        residentMemoryMib: 300,
        unsharedMemoryMib: 60,
        diskUsedMib: 70,
        network: { receivedBytes: 44, sentBytes: 55 },
      },
    },
  );
});

test('CPU usage is the mean since the last sample, and null without one', async () => {
  const { id } = await auto();
  assert.equal((await live(id)).body.metrics.guest.cpu.usedPercent, null);
  // 60 s ago by the guest's clock, 40 s of CPU time since.
  await insertPast(id, 1, { uptime: 40, busyMs: 5_000 });
  api.front.metrics = () => metrics({ cpuBusyMs: 45_000 });
  assert.equal((await live(id)).body.metrics.guest.cpu.usedPercent, 66.7);
  assert.equal((await sample(id)).cpuUsedPercent, 66.7);
  // Reading stores nothing: only the two samples exist.
  assert.equal((await rowsOf(id)).length, 2);
});

test('samples from before a boot, over ten minutes ago or of this second are no CPU baseline', async () => {
  for (const [minutesAgo, before] of [
    [1, { uptime: 5_000, busyMs: 1_000 }],
    [1, { uptime: 40, busyMs: 5_000_000 }],
    [11, { uptime: 40, busyMs: 1_000 }],
    [0.001, { uptime: 40, busyMs: 1_000 }],
    [1, { uptime: 99.5, busyMs: 1_000 }],
  ] as const) {
    const { id } = await auto();
    await insertPast(id, minutesAgo, before);
    assert.equal((await live(id)).body.metrics.guest.cpu.usedPercent, null, JSON.stringify(before));
  }
});

test('numbers from a hostile guest are bounded before they are returned or stored', async () => {
  const { id } = await auto();
  const huge = 1.7e308;
  await insertPast(id, 1, { uptime: 40, busyMs: 0 });
  api.front.metrics = () => ({
    ...metrics(),
    guest: {
      uptimeSeconds: huge,
      vcpu: Number.MAX_SAFE_INTEGER,
      cpuBusyMs: huge,
      load: [huge, huge, huge],
      memoryTotalMib: huge,
      memoryUsedMib: huge,
      diskTotalMib: 5,
      diskUsedMib: huge,
      networkInBytes: huge,
      networkOutBytes: huge,
      processes: Number.MAX_SAFE_INTEGER,
    },
  });
  const { guest } = (await live(id)).body.metrics;
  assert.deepEqual(guest, {
    uptimeSeconds: 316_224_000,
    cpu: { vcpu: 1, usedPercent: 100, busySeconds: 316_224_000 },
    load: { oneMinute: 4_194_304, fiveMinutes: 4_194_304, fifteenMinutes: 4_194_304 },
    memory: { totalMib: 1_024, usedMib: 1_024, usedPercent: 100 },
    disk: { totalMib: 5, usedMib: 5, usedPercent: 100 },
    network: { receivedBytes: Number.MAX_SAFE_INTEGER, sentBytes: Number.MAX_SAFE_INTEGER },
    processCount: 4_194_304,
  });
  const noted = await sample(id);
  assert.deepEqual([noted.cpuUsedPercent, noted.memoryUsedPercent, noted.diskUsedPercent], [100, 100, 100]);
  const stored = (await rowsOf(id)).at(-1);
  assert.deepEqual(
    [stored?.cpu_used, stored?.memory_used, stored?.disk_used, stored?.uptime_seconds],
    [1, 1, 1, 316_224_000],
  );
});

test('a VM that reports no memory and no disk is shown as using none', async () => {
  const { id } = await auto();
  api.front.metrics = () => metrics({ memoryTotalMib: 0, memoryUsedMib: 9, diskTotalMib: 0, diskUsedMib: 9 });
  const { memory, disk } = (await live(id)).body.metrics.guest;
  assert.deepEqual(
    [memory, disk],
    [
      { totalMib: 0, usedMib: 0, usedPercent: 0 },
      { totalMib: 0, usedMib: 0, usedPercent: 0 },
    ],
  );
});

test('a silent guest is 503 sandbox_unreachable, a silent host host_unavailable; nothing is stored', async () => {
  const { id } = await auto();
  for (const [script, code] of [
    [
      () => {
        throw new ExecRefusal('guest_unreachable', 'no');
      },
      'sandbox_unreachable',
    ],
    [
      () => {
        throw new ExecRefusal('vm_not_running', 'no');
      },
      'sandbox_unreachable',
    ],
    [() => ({ ...metrics(), guest: { uptimeSeconds: -1 } }), 'host_unavailable'],
    [
      () => {
        throw new ExecRefusal('unauthorized', 'no');
      },
      'host_unavailable',
    ],
  ] as const) {
    api.front.metrics = script;
    for (const answer of [await live(id), await api.call('POST', `/v1/sandboxes/${id}/metrics/sample`)]) {
      assert.equal(answer.status, 503);
      assert.equal(answer.body.error.code, code);
      assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/);
    }
  }
  assert.deepEqual(await rowsOf(id), []);
});

test('a sandbox destroyed during the measurement is 409 naming the status', async () => {
  const { id } = await auto();
  api.front.metrics = async () => {
    await api.call('POST', `/v1/sandboxes/${id}/destroy`, { headers: { prefer: 'respond-async' } });
    throw new ExecRefusal('vm_not_running', 'no');
  };
  const answer = await live(id);
  assert.equal(answer.status, 409);
  assert.match(answer.body.error.message, /destroying/);
});

test('a sample returns allocation, recommendation and reason, and adds an event with them', async () => {
  const { id } = await auto();
  const noted = await sample(id);
  assert.deepEqual(noted.currentAllocation, { vcpu: 1, memoryGb: 1, diskGb: 10 });
  assert.deepEqual(noted.recommendedAllocation, noted.currentAllocation);
  assert.equal(noted.storedAsPending, false);
  assert.match(noted.reason, /^CPU stays at 1 vCPU: .*memory stays at 1 GB: .*disk stays at 10 GB: /);
  const [event] = await api.db.selectFrom('activity').selectAll().where('sandbox_id', '=', id).execute();
  const { reason: _reason, ...told } = noted;
  assert.deepEqual([event?.kind, event?.actor_kind, event?.details], ['sandbox_metrics_sample', 'api_key', told]);
});

test('an auto sandbox stores a changed recommendation for its next wake and updates it', async () => {
  const { id } = await auto();
  api.front.metrics = () => metrics({ memoryUsedMib: 950 });
  const noted = await sample(id);
  assert.deepEqual([noted.recommendedAllocation, noted.storedAsPending], [{ vcpu: 1, memoryGb: 4, diskGb: 10 }, true]);
  assert.deepEqual(await pendingOf(id), { vcpu: 1, memoryGb: 4, diskGb: 10 });
  assert.equal((await rowOf(id)).allocated_memory_gb, 1);

  api.front.metrics = () => metrics({ memoryUsedMib: 950, diskUsedMib: 9_500 });
  assert.equal((await sample(id)).storedAsPending, true);
  assert.deepEqual(await pendingOf(id), { vcpu: 1, memoryGb: 4, diskGb: 20 });

  await api.db.deleteFrom('metrics_sample').where('sandbox_id', '=', id).execute();
  api.front.metrics = () => metrics();
  assert.equal((await sample(id)).storedAsPending, false);
  assert.equal(await pendingOf(id), undefined);
});

test('for other profiles the recommendation is returned and not stored', async () => {
  const { id } = await api.makeSandbox('ready', { profile: 'agent-small' });
  api.front.metrics = () => metrics({ memoryUsedMib: 950 });
  const noted = await sample(id);
  assert.deepEqual([noted.recommendedAllocation.memoryGb, noted.storedAsPending], [4, false]);
  assert.equal(await pendingOf(id), undefined);
});

test("a user's pending resize is neither replaced nor cleared by samples", async () => {
  const { id } = await auto();
  api.front.metrics = () => metrics({ memoryUsedMib: 950 });
  await sample(id);
  const asked = { vcpu: 1, memoryGb: 2, diskGb: 10 };
  await api.db.transaction().execute((trx) => writeSandboxSize(trx, id, { epoch: 1, pending: asked, resizing: false }));
  for (const memoryUsedMib of [950, 100]) {
    api.front.metrics = () => metrics({ memoryUsedMib });
    assert.equal((await sample(id)).storedAsPending, false);
    assert.deepEqual(await pendingOf(id), asked);
  }
});

test('a recommendation that a wake could not apply stays one, and the next sample can drop it', async () => {
  const { id } = await auto({
    allocated_vcpu: 2,
    pending_vcpu: 1,
    pending_memory_gb: 1,
    pending_disk_gb: 10,
    pending_recommended: true,
  });
  await api.db.transaction().execute(async (trx) => {
    const system = { kind: 'system', id: null, userId: null } as const;
    for (const to of ['sleeping', 'stopped', 'waking', 'ready'] as const) {
      const result = await transitionSandbox(trx, { sandboxId: id, epoch: 1, to, actor: system });
      assert.equal(result.outcome, 'changed');
    }
  });
  assert.equal((await rowOf(id)).pending_recommended, true);
  await sample(id);
  assert.equal(await pendingOf(id), undefined);
});

test('a wake without capacity ignores a recommendation but fails for a requested resize', async () => {
  const pending = { pending_vcpu: 1, pending_memory_gb: 5_000, pending_disk_gb: 10 };
  const asleep = { profile: 'auto', wakes_from: 'snapshot', ...pending } as const;
  const recommended = await api.makeSandbox('stopped', { ...asleep, pending_recommended: true });
  const woken = await api.call('POST', `/v1/sandboxes/${recommended.id}/wake`, {
    headers: { prefer: 'respond-async' },
  });
  assert.deepEqual(
    [woken.status, woken.body.sandbox.status, woken.body.sandbox.pendingAllocation],
    [200, 'waking', undefined],
  );
  const asked = await api.makeSandbox('stopped', asleep);
  const refused = await api.call('POST', `/v1/sandboxes/${asked.id}/wake`, { headers: { prefer: 'respond-async' } });
  assert.deepEqual([refused.status, refused.body.error.code], [503, 'insufficient_capacity']);
});

test('recommendations stay within plan and host; without a plan nothing larger is recommended', async () => {
  api.front.metrics = () => metrics({ memoryUsedMib: 950, memoryTotalMib: 1_000, diskUsedMib: 9_900 });
  const org = await api.makeOrg();
  const planned = async (
    plan: string,
    status: 'active' | 'canceled',
  ): Promise<MetricsSample['recommendedAllocation']> => {
    await api.db
      .insertInto('subscription')
      .values({ org_id: org.orgId, plan, status })
      .onConflict((conflict) => conflict.column('org_id').doUpdateSet({ plan, status }))
      .execute();
    const { id } = await auto({
      org_id: org.orgId,
      project_id: org.projectId,
      allocated_memory_gb: 4,
      allocated_disk_gb: 20,
    });
    api.front.metrics = () =>
      metrics({ memoryTotalMib: 4_096, memoryUsedMib: 4_000, diskTotalMib: 20_480, diskUsedMib: 20_000 });
    const answer = await api.call('POST', `/v1/sandboxes/${id}/metrics/sample`, { token: org.token });
    return answer.body.sample.recommendedAllocation;
  };
  assert.deepEqual(await planned('self-hosted', 'active'), { vcpu: 1, memoryGb: 8, diskGb: 40 });
  assert.deepEqual(await planned('modest', 'active'), { vcpu: 1, memoryGb: 4, diskGb: 20 });
  assert.deepEqual(await planned('self-hosted', 'canceled'), { vcpu: 1, memoryGb: 4, diskGb: 20 });
  await api.db
    .updateTable('host')
    .set({ largest_vcpu: 8, largest_memory_mib: 7_000, largest_disk_gib: 1_000 })
    .execute();
  try {
    assert.deepEqual(await planned('self-hosted', 'active'), { vcpu: 1, memoryGb: 4, diskGb: 40 });
  } finally {
    await api.db
      .updateTable('host')
      .set({ largest_vcpu: null, largest_memory_mib: null, largest_disk_gib: null })
      .execute();
  }
});

test("samples last a day, thinned after ten minutes to each minute's memory peak, at most 2,000", async () => {
  const { id } = await auto();
  for (const minutesAgo of [1_441, 1_439, 9, 9.1, 9.2]) await insertPast(id, minutesAgo);
  // Three in one past minute: at seconds 10, 20 and 30.
  for (const [second, memory] of [
    [10, 0.3],
    [20, 0.5],
    [30, 0.4],
  ] as const) {
    await insertPast(id, 60, { memory });
    await sql`
      update metrics_sample set at = date_trunc('minute', now() - interval '1 hour') + ${second} * interval '1 second'
      where sandbox_id = ${id} and memory_used between ${memory - 0.01} and ${memory + 0.01}`.execute(api.db);
  }
  await sample(id);
  const kept = (await rowsOf(id)).map((row) => Math.round(row.memory_used * 100));
  assert.deepEqual(kept, [20, 50, 20, 20, 20, 25]);

  await sql`
    insert into metrics_sample
      (id, sandbox_id, at, uptime_seconds, cpu_busy_ms, vcpu, memory_gb, disk_gb, memory_used, disk_used)
    select 'many' || n, ${id}, now() - n * interval '0.1 seconds', 1, 1, 1, 1, 10, 0.1, 0.1
    from generate_series(1, 3000) n`.execute(api.db);
  await sample(id);
  assert.equal((await rowsOf(id)).length, 2_000);
});

test('samples are deleted in the transaction that deletes their sandbox; others stay', async () => {
  const gone = await auto();
  const stays = await auto();
  for (const { id } of [gone, stays]) await sample(id);
  const actor = { kind: 'system', id: null, userId: null } as const;
  await api.db
    .transaction()
    .execute((trx) => transitionSandbox(trx, { sandboxId: gone.id, epoch: 1, to: 'destroying', actor }));
  assert.equal((await rowsOf(gone.id)).length, 1);
  await api.db.transaction().execute(async (trx) => {
    await transitionSandbox(trx, { sandboxId: gone.id, epoch: 1, to: 'deleted', actor });
    // Other transactions see neither change yet.
    assert.equal((await rowsOf(gone.id)).length, 1);
  });
  assert.deepEqual([(await rowsOf(gone.id)).length, (await rowsOf(stays.id)).length], [0, 1]);
});

test('concurrent samples of a sandbox are all stored, with one recommendation', async () => {
  const { id } = await auto();
  api.front.metrics = () => metrics({ memoryUsedMib: 950 });
  const noted = await Promise.all(Array.from({ length: 8 }, () => sample(id)));
  assert.deepEqual(new Set(noted.map(({ storedAsPending }) => storedAsPending)), new Set([true]));
  assert.equal((await rowsOf(id)).length, 8);
  assert.deepEqual(await pendingOf(id), { vcpu: 1, memoryGb: 4, diskGb: 10 });
});
