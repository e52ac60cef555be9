// The idle watch: sandboxes that it puts to sleep or spares, and use at that moment. Tests write
// the past into the rows.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import type { VmView } from '@berth/protocol/host.ts';
import { sql } from 'kysely';
import { newId } from '../../../src/store/database/ids.ts';
import { insertProject } from '../../../src/store/orgs/projects.ts';
import type { NewSandbox, SandboxRow } from '../../../src/store/database/schema.ts';
import { noteAwakeProcess } from '../../../src/store/sandboxes/activity-signals.ts';
import { IdleWatch } from '../../../src/workers/sandboxes/idle.ts';
import { startApi, type TestApi } from '../../world/api.ts';
import type { FakeProcess } from '../../world/guests/process-guests.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';

let api: TestApi;
/** CPU time of the VMs listed by the host; VMs not in the map do not run. */
let cpuMs: Map<string, number>;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(async () => {
  await api.db
    .updateTable('sandbox')
    .set({ status: 'deleted', deleted_at: new Date() })
    .where('status', '<>', 'deleted')
    .execute();
  cpuMs = new Map();
  api.steps.length = 0;
  api.front.listVms = () => [...cpuMs].map(([id, used]): VmView => ({ id, epoch: 1, status: 'running', cpuMs: used }));
});

/** A watch whose CPU span is two polls. */
function watch(leads = (): boolean => true): IdleWatch {
  const { db, hosts, log, lifecycle } = api.context;
  return new IdleWatch({
    context: { db, hosts, log, stopping: new AbortController().signal },
    lifecycle,
    session: { isLeader: () => Promise.resolve(leads()) },
    cpuSpanMs: 0,
  });
}

async function unused(
  minutes: number,
  changed: Partial<NewSandbox> = {},
  status: SandboxStatus = 'ready',
): Promise<SandboxRow> {
  const row = await api.makeSandbox(status, { last_active_at: new Date(Date.now() - minutes * 60_000), ...changed });
  cpuMs.set(row.id, 1_000);
  return row;
}

async function projectWith(defaultIdleMinutes: number | null): Promise<string> {
  const row = {
    org_id: api.orgId,
    name: 'idle',
    use_case: 'internal',
    default_idle_minutes: defaultIdleMinutes,
    created_by: api.userId,
  };
  return (await insertProject(api.db, { id: newId('project'), ...row })).id;
}

const rowOf = (id: string): Promise<SandboxRow> =>
  api.db.selectFrom('sandbox').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
const statusOf = async (id: string): Promise<SandboxStatus> => (await rowOf(id)).status;

test('a sandbox unused for the default 30 minutes sleeps at the second pass; the feed has idleSince', async () => {
  const [idle, used] = [await unused(31), await unused(29)];
  const idleWatch = watch();
  await idleWatch.tick();
  assert.deepEqual(api.steps, [], 'one look says nothing of its processors');
  await idleWatch.tick();
  assert.deepEqual(api.steps, [{ kind: 'sleep', step: { sandboxId: idle.id, epoch: 2 } }]);
  assert.deepEqual([await statusOf(idle.id), await statusOf(used.id)], ['sleeping', 'ready']);
  const events = await api.db.selectFrom('activity').selectAll().where('sandbox_id', '=', idle.id).execute();
  assert.deepEqual(
    events.map(({ kind, actor_kind, details }) => [kind, actor_kind, details['idleSince']]),
    [['sandbox_sleep_requested', 'system', idle.last_active_at.toISOString()]],
  );
  await idleWatch.tick();
  assert.equal(api.steps.length, 1);
});

test('a process that keeps its sandbox awake does so until it has ended', async () => {
  const row = await unused(0);
  const start = async (keepAwake: boolean): Promise<FakeProcess> => {
    const answer = await api.call('POST', `/v1/sandboxes/${row.id}/processes`, {
      body: { command: 'serve', keepAwake },
    });
    assert.equal(answer.body.process.keepAwake, keepAwake);
    return api.front.processes.of(row.id).get(answer.body.process.id) as FakeProcess;
  };
  const [server, other] = [await start(true), await start(false)];
  const age = (): Promise<unknown> =>
    api.db
      .updateTable('sandbox')
      .set({ last_active_at: sql`now() - interval '31 minutes'` })
      .where('id', '=', row.id)
      .execute();
  const idleWatch = watch();
  await age();
  await idleWatch.tick();
  await idleWatch.tick();
  const { status, last_active_by: by } = await rowOf(row.id);
  assert.deepEqual([status, by], ['ready', 'process']);
  server.end();
  await age();
  await idleWatch.tick();
  assert.equal(await statusOf(row.id), 'sleeping');
  assert.deepEqual([other.view.end, (await rowOf(row.id)).has_awake_process], [null, false]);
});

test('a guest that does not say what it runs keeps a sandbox awake only for such a process', async () => {
  const [silent, plain] = [await unused(31), await unused(31)];
  await noteAwakeProcess(api.db, silent.id);
  const idleWatch = watch();
  await idleWatch.tick();
  api.front.processes.answer = () => Promise.reject(new ExecRefusal('vm_not_running', 'no'));
  await idleWatch.tick();
  assert.deepEqual([await statusOf(silent.id), await statusOf(plain.id)], ['ready', 'sleeping']);
});

test("a project's idle time is used, and 0 disables idle sleep", async () => {
  const [one, hour, never] = [await projectWith(1), await projectWith(60), await projectWith(0)];
  const [quick, slow, kept] = [
    await unused(2, { project_id: one }),
    await unused(45, { project_id: hour }),
    await unused(10_000, { project_id: never }),
  ];
  const idleWatch = watch();
  await idleWatch.tick();
  await idleWatch.tick();
  assert.deepEqual(
    [await statusOf(quick.id), await statusOf(slow.id), await statusOf(kept.id)],
    ['sleeping', 'ready', 'ready'],
  );
});

test('always_on, ephemeral and non-awake sandboxes are left alone however long unused', async () => {
  const kept = [
    await unused(10_000, { persistence_policy: 'always_on' }),
    await unused(10_000, { mode: 'ephemeral', ttl_seconds: 60, expires_at: new Date(Date.now() + 60_000) }),
    await unused(10_000, {}, 'stopped'),
    await unused(10_000, {}, 'provisioning'),
    await unused(10_000, {}, 'failed'),
  ];
  const idleWatch = watch();
  await idleWatch.tick();
  await idleWatch.tick();
  for (const before of kept) assert.deepEqual(await rowOf(before.id), before);
  assert.deepEqual(api.steps, []);
});

test('a busy VM counts as used without calls: activity is recorded, and it stays awake', async () => {
  const { id } = await unused(10_000);
  const idleWatch = watch();
  await idleWatch.tick();
  cpuMs.set(id, 1_000_000);
  await idleWatch.tick();
  assert.equal(await statusOf(id), 'ready');
  const { last_active_at: noted } = await rowOf(id);
  assert.ok(Date.now() - noted.getTime() < 60_000);
  // Idle again only after the full idle time.
  await idleWatch.tick();
  await idleWatch.tick();
  assert.deepEqual([await statusOf(id), (await rowOf(id)).last_active_at], ['ready', noted]);
});

test('a VM without measurements, or restarted, does not sleep before two passes', async () => {
  const { id } = await unused(10_000);
  const idleWatch = watch();
  cpuMs.delete(id);
  await idleWatch.tick();
  await idleWatch.tick();
  cpuMs.set(id, 5_000);
  await idleWatch.tick();
  cpuMs.set(id, 10);
  await idleWatch.tick();
  assert.equal(await statusOf(id), 'ready');
  await idleWatch.tick();
  assert.equal(await statusOf(id), 'sleeping');
});

test('no sandbox sleeps while its host is silent', async () => {
  const { id } = await unused(10_000);
  const idleWatch = watch();
  await idleWatch.tick();
  api.front.listVms = () => {
    throw new ExecRefusal('internal', 'no');
  };
  await idleWatch.tick();
  assert.equal(await statusOf(id), 'ready');
});

test('passes count only while their replica leads without interruption', async () => {
  const { id } = await unused(10_000);
  let leads = true;
  const idleWatch = watch(() => leads);
  await idleWatch.tick();
  leads = false;
  await idleWatch.tick();
  leads = true;
  await idleWatch.tick();
  assert.equal(await statusOf(id), 'ready');
  await idleWatch.tick();
  assert.equal(await statusOf(id), 'sleeping');
});

test('a sandbox used after its row was read stays awake', async () => {
  const { id } = await unused(10_000);
  const idleWatch = watch();
  await idleWatch.tick();
  const listed = api.front.listVms;
  api.front.listVms = async () => {
    await sql`update sandbox set last_active_at = now() where id = ${id}`.execute(api.db);
    return listed?.() ?? [];
  };
  await idleWatch.tick();
  assert.deepEqual([await statusOf(id), api.steps], ['ready', []]);
});

test('a command at the moment of an idle sleep either runs or is 409 without having run', async () => {
  const ran = new Set<string>();
  api.front.exec = ({ command }) => {
    ran.add(command);
    return Promise.resolve({ exitCode: 0, stdout: '', stderr: '', truncated: false, timedOut: false });
  };
  const sandboxes = await Promise.all(Array.from({ length: 40 }, () => unused(10_000)));
  const idleWatch = watch();
  await idleWatch.tick();
  const [answers] = await Promise.all([
    Promise.all(sandboxes.map(({ id }) => api.call('POST', `/v1/sandboxes/${id}/exec`, { body: { command: id } }))),
    idleWatch.tick(),
  ]);
  for (const [index, { id }] of sandboxes.entries()) {
    const status = answers[index]?.status;
    assert.deepEqual(
      [status, ran.has(id), await statusOf(id)],
      status === 200 ? [200, true, 'ready'] : [409, false, 'sleeping'],
    );
  }
});
