// Crashes during refills of the pool and claims from it: after a kill at any step, no VM is left
// behind, and the sandbox of a claim is awake or gone.
import { after, before, test } from 'node:test';
import { CRASH_POINTS } from '@berth/host/vm/crash-point.ts';
import { sampleOf } from '../../os/test/long-run.ts';
import { pointsOf } from '../../os/test/crash-points.ts';
import { readHostInfo } from '@berth/machine/roles/host/service.ts';
import { CrashHarness } from './harness.ts';
import { until } from '../../os/test/until.ts';

let crashes: CrashHarness;

before(async () => {
  crashes = await CrashHarness.start({ environment: { BERTH_POOL_MIN: '1', BERTH_POOL_MAX: '1' } });
});

after(async () => {
  await crashes?.end();
});

// The host's own crash tests kill at each point.
for (const point of sampleOf(pointsOf(CRASH_POINTS, 'pool:'), 4)) {
  test(`the host daemon is killed at ${point}`, async () => {
    await poolIsFull();
    if (point.startsWith('pool:claim-')) {
      await crashes.crashOf('host', point, async () => void (await crashes.make()));
    } else {
      // The next daemon ends the waiting VMs and then starts its own.
      await crashes.crashAtStartOf('host', point);
    }
  });
}

async function poolIsFull(): Promise<void> {
  const signal = AbortSignal.timeout(300_000);
  await until('a VM waits in the pool', async () =>
    (await readHostInfo(crashes.parts.paths, signal))?.pool.ready === 1 ? true : null,
  );
}
