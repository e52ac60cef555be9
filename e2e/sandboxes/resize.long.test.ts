// Resizes: live and verified in the guest, stored for the next wake while asleep, refused.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import {
  awakeSandbox,
  call,
  destroySandbox,
  errorOf,
  exec,
  resizeSandbox,
  sleepSandbox,
  waitForStatus,
  wakeSandbox,
} from '../world/client.ts';
import { instanceForTests } from '../world/instance.ts';
import { until } from '../../os/test/until.ts';
import { queryWitness, startWitness } from '../world/witness.ts';

const berth = instanceForTests('resize');

test('an increase takes effect at once, and the guest sees it', async () => {
  const { id } = await awakeSandbox(berth);
  const before = await startWitness(berth, id);
  const asked = await resizeSandbox(berth, id, { vcpu: 2, memoryGb: 4, diskGb: 12 });
  const grown = await until('the size is in force', async () => {
    const now = await inspectSize(id);
    return now.pendingAllocation === undefined && now.allocated_vcpu === 2 ? now : null;
  });
  assert.ok(['running', 'ready'].includes(asked.status));
  assert.deepEqual(sizeOf(grown), [2, 4, 12]);
  const inside = await insideOf(id);
  assert.equal(inside.processors, 2);
  assert.ok(inside.memoryMib > 3_500 && inside.memoryMib <= 4_096, JSON.stringify(inside));
  assert.ok(inside.diskMib > 11_300, JSON.stringify(inside));
  // More memory than before is usable, on two processors.
  const used = await exec(berth, id, `python3 -c "print(len(b'x' * 1_500_000_000))" && taskset -c 1 echo second`, 300);
  assert.equal(used.stdout, '1500000000\nsecond\n', used.stderr);
  assert.equal((await queryWitness(berth, id)).pid, before.pid);
  await destroySandbox(berth, id);
});

test('a resize of one amount leaves the others unchanged', async () => {
  const { id } = await awakeSandbox(berth, { machineSize: 'medium' });
  await resizeSandbox(berth, id, { vcpu: 3 });
  const grown = await until('the size is in force', async () =>
    (await inspectSize(id)).allocated_vcpu === 3 ? await inspectSize(id) : null,
  );
  assert.deepEqual(sizeOf(grown), [3, 4, 20]);
  assert.equal((await insideOf(id)).processors, 3);
  await destroySandbox(berth, id);
});

test('a decrease waits for the next wake and applies then, with all processes kept', async () => {
  const { id } = await awakeSandbox(berth);
  await resizeSandbox(berth, id, { vcpu: 2, memoryGb: 3 });
  await until('the size is in force', async () => ((await inspectSize(id)).allocated_memory_gb === 3 ? true : null));
  const before = await startWitness(berth, id);
  const asked = await resizeSandbox(berth, id, { vcpu: 1, memoryGb: 1 });
  assert.deepEqual(sizeOf(asked), [2, 3, 10]);
  assert.deepEqual(asked.pendingAllocation, { vcpu: 1, memoryGb: 1, diskGb: 10 });
  await sleepSandbox(berth, id);
  const awake = await wakeSandbox(berth, id);
  assert.equal(awake.lastWake?.from, 'snapshot');
  assert.equal(awake.pendingAllocation, undefined);
  assert.equal(awake.allocated_vcpu, 1);
  const inside = await insideOf(id);
  assert.equal(inside.processors, 1);
  // The guest may keep memory; the sandbox then shows the amount that remains.
  assert.ok(
    inside.memoryMib <= awake.allocated_memory_gb * 1_024 &&
      inside.memoryMib > awake.allocated_memory_gb * 1_024 * 0.85,
  );
  assert.equal((await queryWitness(berth, id)).first, before.first);
  await destroySandbox(berth, id);
});

test('a resize of a sleeping sandbox is recorded at once, and its guest has it after the wake', async () => {
  const { id } = await awakeSandbox(berth);
  const before = await startWitness(berth, id);
  await sleepSandbox(berth, id);
  const asked = await resizeSandbox(berth, id, { vcpu: 2, memoryGb: 2, diskGb: 15 });
  assert.deepEqual([...sizeOf(asked), asked.pendingAllocation], [2, 2, 15, undefined]);
  await wakeSandbox(berth, id);
  const inside = await insideOf(id);
  assert.equal(inside.processors, 2);
  assert.ok(inside.memoryMib > 1_740 && inside.memoryMib <= 2_048, JSON.stringify(inside));
  assert.ok(inside.diskMib > 14_000, JSON.stringify(inside));
  assert.equal((await queryWitness(berth, id)).first, before.first);
  await destroySandbox(berth, id);
});

test('a smaller disk and a size beyond every host are refused', async () => {
  const { id } = await awakeSandbox(berth);
  const path = `/v1/sandboxes/${id}/resize`;
  for (const body of [{ diskGb: 9 }, { vcpu: 1_000 }, { memoryGb: 60_000 }]) {
    assert.equal(
      errorOf(await call(berth, 'POST', path, body), 400).code,
      'allocation_out_of_bounds',
      JSON.stringify(body),
    );
  }

  for (const body of [{}, { vcpu: 0 }, { vcpu: 1.5 }, { cpus: 2 }])
    assert.equal(errorOf(await call(berth, 'POST', path, body), 400).code, 'invalid_request', JSON.stringify(body));

  assert.deepEqual(sizeOf(await inspectSize(id)), [1, 1, 10]);
  await destroySandbox(berth, id);
});

function sizeOf({
  allocated_vcpu: vcpu,
  allocated_memory_gb: memoryGb,
  allocated_disk_gb: diskGb,
}: Sandbox): [number, number, number] {
  return [vcpu, memoryGb, diskGb];
}

async function inspectSize(id: string): Promise<Sandbox> {
  return await waitForStatus(berth, id, ['running', 'ready']);
}

async function insideOf(id: string): Promise<{ processors: number; memoryMib: number; diskMib: number }> {
  const { stdout } = await exec(
    berth,
    id,
    "nproc; free -m | awk '/^Mem:/ {print $2}'; df -m --output=size / | tail -1",
  );
  const [processors = 0, memoryMib = 0, diskMib = 0] = stdout.trim().split('\n').map(Number);
  return { processors, memoryMib, diskMib };
}
