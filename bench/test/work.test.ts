// CPU times from which bench:work subtracts the guest's.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { until } from '../../os/test/until.ts';
import { CpuGroup } from '../../machine/src/tests/cpu-group.ts';
import { familyOf, threadTimes } from '../work/threads.ts';

const BUSY = 'for ((i = 0; i < 20000; i += 1)); do :; done';

/** Runs the script in bash; it waits for its stdin to close. */
async function withBash(script: string, run: (child: ChildProcess, pid: number) => Promise<void>): Promise<void> {
  const child = spawn('bash', ['-c', `${script}\necho ready; read`], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  try {
    await once(child.stdout, 'data');
    await run(child, child.pid ?? 0);
  } finally {
    child.stdin.end();
    await exited;
  }
}

test('the time of threads named as vCPUs is separate', async () => {
  await withBash(BUSY, async (_child, pid) => {
    const { vcpuMs, otherMs } = threadTimes(pid) ?? {};
    assert.deepEqual([vcpuMs, (otherMs ?? 0) > 0], [0, true]);
  });
  await withBash(`printf 'CPU 0/KVM' > /proc/self/comm; ${BUSY}`, async (_child, pid) => {
    const { vcpuMs, otherMs } = threadTimes(pid) ?? {};
    assert.deepEqual([(vcpuMs ?? 0) > 0, otherMs], [true, 0]);
  });
});

test('threads of an exited process have no times', async () => {
  const child = spawn('true');
  await once(child, 'exit');
  assert.equal(threadTimes(child.pid ?? 0), null);
});

test('a family includes grandchildren, and a group the time of exited ones', async () => {
  const group = await CpuGroup.make(`berth-work-test-${process.pid}`);
  try {
    await withBash('sleep 1000 & grandchild=$!; trap "kill $grandchild" EXIT', async (_child, pid) => {
      // The grandchild is a copy of bash until it executes sleep.
      await until('the grandchild runs sleep', async () => {
        const names = [...familyOf(pid).values()].toSorted();
        assert.equal(names.length, 2);
        return names[1] === 'sleep' ? true : null;
      });
    });
    const child = spawn('bash', ['-c', `read; (${BUSY})`], { stdio: ['pipe', 'ignore', 'inherit'] });
    await group.add(child.pid ?? 0);
    child.stdin.end('\n');
    await once(child, 'exit');
    await until('the group has its time', async () => ((await group.milliseconds()) > 0 ? true : null));
  } finally {
    await group.remove();
  }
});
