// Sandboxes of end users, their labels and variables, on the real service and on the test server.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Sandbox } from '../src/index.ts';
import type { Berth } from '../src/index.ts';
import { failing, realWorld, worldInMemory, type World } from './worlds.ts';

for (const start of [realWorld, worldInMemory]) {
  describe(start === realWorld ? 'on the real service' : 'on the test server', () => {
    let world: World;
    let berth: Berth;
    before(async () => {
      world = await start();
      berth = world.client();
    });
    after(() => world.close());
    const make = async (): Promise<Sandbox> =>
      await berth.sandboxes.create({ agent: 'agent_one', machineSize: 'small' });

    test('variables are set, replaced, unset and listed without values', async () => {
      const sandbox = await make();
      const names = async (): Promise<string[]> => (await sandbox.variables.list()).map(({ name }) => name);
      assert.deepEqual(await names(), []);
      const [first] = await sandbox.variables.set({ MODE: 'sealed', PORT: '80' });
      assert.deepEqual(Object.keys(first ?? {}), ['name', 'updatedAt']);
      assert.deepEqual(await sandbox.variables.set({ PORT: null, A: '' }), await sandbox.variables.list());
      assert.deepEqual(await names(), ['A', 'MODE']);
      await sandbox.variables.unset('A');
      await sandbox.variables.unset('A');
      assert.deepEqual(await names(), ['MODE']);
      await sandbox.variables.replace({ B: 'b' });
      assert.deepEqual(await names(), ['B']);
      await assert.rejects(sandbox.variables.set({ 'A-B': 'x' }), failing('invalid_request', 400));
      await sandbox.destroy();
      await assert.rejects(sandbox.variables.set({ A: 'a' }), failing('sandbox_state_conflict', 409));
      assert.deepEqual(await names(), []);
    });

    test('getOrCreate creates, returns and wakes the sandbox of an end user, and names other fields', async () => {
      const made = await berth.sandboxes.getOrCreate({ endUserId: 'user-9', machineSize: 'small', name: 'nine' });
      assert.deepEqual([made.status, made.data.key, made.data.endUserId], ['ready', 'user-9', 'user-9']);
      const [one, other] = await Promise.all([
        berth.sandboxes.getOrCreate({ endUserId: 'user-9' }),
        berth.sandboxes.getOrCreate({ endUserId: 'user-9', name: 'other', metadata: { a: 1 } }),
      ]);
      assert.deepEqual([one.id, other.id, other.name], [made.id, made.id, 'nine']);
      await made.sleep();
      const woken = await berth.sandboxes.getOrCreate({ endUserId: 'user-9' });
      assert.deepEqual([woken.id, woken.status], [made.id, 'ready']);
      await assert.rejects(
        berth.sandboxes.getOrCreate({ endUserId: 'user-9', machineSize: 'large' }),
        failing('sandbox_differs', 409),
      );
      const keyed = await berth.sandboxes.getOrCreate({ key: 'a second', endUserId: 'user-9' });
      assert.notEqual(keyed.id, made.id);
      await made.destroy();
      const successor = await berth.sandboxes.getOrCreate({ endUserId: 'user-9', machineSize: 'large' });
      assert.ok(successor.id !== made.id && successor.status === 'ready');
      await Promise.all([successor.destroy(), keyed.destroy()]);
    });

    test('name, labels and idle time of a sandbox change; a deleted one is refused', async () => {
      const sandbox = await make();
      await sandbox.update({ name: 'renamed', metadata: { plan: 'paid' }, idleMinutes: 90 });
      assert.deepEqual(
        [sandbox.name, sandbox.data.metadata, sandbox.data.idleMinutes],
        ['renamed', { plan: 'paid' }, 90],
      );
      assert.deepEqual((await berth.sandboxes.get(sandbox.id)).data, sandbox.data);
      await sandbox.update({ idleMinutes: null });
      assert.deepEqual([sandbox.name, sandbox.data.idleMinutes], ['renamed', null]);
      await sandbox.destroy();
      await assert.rejects(sandbox.update({ name: 'x' }), failing('sandbox_state_conflict', 409));
    });

    test('diagnostics have last start, console or why it is missing, and events; they wake nothing', async () => {
      const sandbox = await make();
      const ready = await sandbox.diagnostics();
      assert.deepEqual([ready.sandboxId, ready.status, ready.failure, ready.clone], [sandbox.id, 'ready', null, null]);
      assert.deepEqual(ready.lastStart, { kind: 'create', at: sandbox.data.createdAt, reason: null });
      assert.deepEqual(ready.console, { text: '', truncated: false, booted: false });
      await sandbox.exec('true');
      await sandbox.sleep();
      const asleep = await sandbox.diagnostics();
      assert.deepEqual([asleep.status, asleep.wakesFrom], ['stopped', 'snapshot']);
      assert.deepEqual([asleep.console, asleep.consoleMissing?.code], [null, 'asleep']);
      assert.equal((await sandbox.refresh()).status, 'stopped');
      await sandbox.wake();
      const woken = await sandbox.diagnostics();
      assert.deepEqual([woken.lastStart.kind, woken.consoleMissing], ['wake', null]);
      const kinds = woken.events.map(({ kind }) => kind);
      for (const kind of ['sandbox_created', 'sandbox_sleep_requested', 'sandbox_wake_requested'])
        assert.ok(kinds.includes(kind), kind);
      assert.ok(!kinds.includes('sandbox_exec'));
      await sandbox.destroy();
      assert.equal((await sandbox.diagnostics()).consoleMissing?.code, 'deleted');
    });

    test('all iterates over pages while sandboxes come and go, and returns none twice', async () => {
      const labels = { metadata: { batch: 'all' } };
      const create = async (): Promise<string> =>
        (await berth.sandboxes.create({ agent: 'agent_one', machineSize: 'small', ...labels })).id;
      const made = [await create(), await create(), await create(), await create(), await create()];
      const seen: string[] = [];
      for await (const sandbox of berth.sandboxes.all({ ...labels, pageSize: 2 })) {
        seen.push(sandbox.id);
        // The newest comes before the pages that remain; the cursor is a deleted sandbox.
        if (seen.length === 2) {
          made.push(await create());
          await sandbox.destroy();
          await (await berth.sandboxes.get(made[1] ?? '')).destroy();
        }
      }
      assert.deepEqual(
        seen,
        [4, 3, 2, 0].map((at) => made[at]),
      );
      const oldestFirst: string[] = [];
      for await (const { id } of berth.sandboxes.all({ ...labels, sort: 'createdAt', pageSize: 1 })) {
        oldestFirst.push(id);
        if (oldestFirst.length === 3) made.push(await create());
      }
      assert.deepEqual(
        oldestFirst,
        [0, 2, 4, 5, 6].map((at) => made[at]),
      );
      for await (const sandbox of berth.sandboxes.all(labels)) await sandbox.destroy({ wait: false });
      await assert.rejects(berth.sandboxes.all({ pageSize: 0 }).next(), failing('invalid_request', 400));
    });

    test('a repeated idempotency key returns the first sandbox, and is refused with other fields', async () => {
      const spec = { agent: 'agent_one', metadata: { order: 7 } } as const;
      const first = await berth.sandboxes.create(spec, { idempotencyKey: 'order-7' });
      const again = await berth.sandboxes.create(spec, { idempotencyKey: 'order-7' });
      assert.equal(again.id, first.id);
      await assert.rejects(
        berth.sandboxes.create({ ...spec, name: 'x' }, { idempotencyKey: 'order-7' }),
        failing('idempotency_key_conflict', 409),
      );
      await first.destroy();
    });
  });
}
