// Crashes during sleep, wake and resize: after a kill at any step, a sandbox keeps its memory and
// disk, and is awake, asleep, or failed with its disk.
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CRASH_POINTS as API_CRASH_POINTS } from '@berth/api/workers/steps/crash-point.ts';
import { CRASH_POINTS as HOST_CRASH_POINTS } from '@berth/host/vm/crash-point.ts';
import { SNAPSHOT_FILES } from '../../host/src/vm/qemu/snapshot/manifest.ts';
import { act, getSandbox, resizeSandbox, sleepSandbox, waitForStatus, wakeSandbox } from '../world/client.ts';
import { attempt, CrashHarness } from './harness.ts';
import { queryDatabase } from '../world/database.ts';
import { processesOfVm } from '../world/leftovers.ts';
import { pointsOf } from '../../os/test/crash-points.ts';
import { sampleOf } from '../../os/test/long-run.ts';
import { until } from '../../os/test/until.ts';
import { killIfThere } from '../../os/test/signal-if-there.ts';

let crashes: CrashHarness;

before(async () => {
  crashes = await CrashHarness.start();
});

after(async () => {
  await crashes?.end();
});

/** Actions that reach a step of the verb. */
const STORIES: Readonly<Record<string, () => Promise<unknown>>> = {
  sleep: async () => {
    const { id } = await crashes.makeInhabited();
    return sleepSandbox(crashes.parts.caller, id);
  },
  wake: async () => {
    const { id } = await crashes.makeInhabited();
    await sleepSandbox(crashes.parts.caller, id);
    return wakeSandbox(crashes.parts.caller, id);
  },
  resize: async () => {
    const { id } = await crashes.makeInhabited();
    return resizeSandbox(crashes.parts.caller, id, { vcpu: 2, memoryGb: 2, diskGb: 12 });
  },
  boot: async () => {
    const { id } = await crashes.makeInhabited();
    await sleepSandbox(crashes.parts.caller, id);
    crashes.losesMemory(id);
    await damage(join(crashes.parts.dataFolder, 'host', 'vms', id, 'snapshot', SNAPSHOT_FILES.memory));
    return wakeSandbox(crashes.parts.caller, id);
  },
  recovered: async () => {
    const { id } = await crashes.makeInhabited();
    await forget(id);
    return waitForStatus(crashes.parts.caller, id, ['running', 'ready']);
  },
};

const storyOf = (point: string): Promise<unknown> | undefined => STORIES[point.split(':')[0] ?? '']?.();

// The API's and the host's own crash tests kill at each point.
for (const point of sampleOf(pointsOf(API_CRASH_POINTS, 'sleep:', 'wake:', 'resize:', 'recovered:'))) {
  test(`the API is killed at ${point}`, async () => {
    await crashes.crashOf('api', point, async () => void (await storyOf(point)));
  });
}

for (const point of sampleOf(pointsOf(HOST_CRASH_POINTS, 'sleep:', 'wake:', 'boot:', 'resize:'))) {
  test(`the host daemon is killed at ${point}`, async () => {
    await crashes.crashOf('host', point, async () => void (await storyOf(point)));
  });
}

const UNDER_WAY: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
  sleep: async (id) => act(crashes.parts.caller, id, 'sleep'),
  wake: async (id) => {
    await sleepSandbox(crashes.parts.caller, id);
    return act(crashes.parts.caller, id, 'wake');
  },
  resize: async (id) => resizeSandbox(crashes.parts.caller, id, { vcpu: 2, memoryGb: 2, diskGb: 12 }),
};

for (const [verb, begin] of Object.entries(UNDER_WAY)) {
  test(`Postgres is killed during a ${verb}`, async () => {
    const { id } = await crashes.makeInhabited();
    const begun = attempt(() => begin(id));
    await isUnderWay(verb, id);
    await crashes.killed('database');
    await begun;
    await crashes.recovered();
  });

  test(`API, host daemon and Postgres are killed together during a ${verb}`, async () => {
    const { id } = await crashes.makeInhabited();
    const begun = attempt(() => begin(id));
    await isUnderWay(verb, id);
    await crashes.killed('api', 'host', 'database');
    await begun;
    await crashes.recovered();
  });
}

// The tests of creates kill QEMU when it is awake.
for (const [verb, begin] of sampleOf(Object.entries(UNDER_WAY), 3)) {
  test(`QEMU is killed during a ${verb}`, async () => {
    const { id } = await crashes.makeInhabited();
    const begun = attempt(() => begin(id));
    await isUnderWay(verb, id);
    crashes.losesMemory(id);
    for (const pid of await processesOfVm(id)) killIfThere(pid);
    crashes.counts.kills += 1;
    await begun;
    await crashes.recovered();
  });
}

/** Resolves as soon as the verb is seen to have begun; at once for a resize, which is invisible. */
async function isUnderWay(verb: string, id: string): Promise<void> {
  if (verb === 'resize') return;
  const seen = verb === 'sleep' ? ['sleeping', 'stopped'] : ['waking'];
  await until(`it is ${seen.join(' or ')}`, async () =>
    seen.includes((await getSandbox(crashes.parts.caller, id)).status) ? true : null,
  );
}

/** Flips a byte in the middle of a file. */
async function damage(path: string): Promise<void> {
  const at = Math.floor((await stat(path)).size / 2);
  const file = await open(path, 'r+');
  try {
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, at);
    await file.write(Buffer.from([(buffer[0] ?? 0) ^ 0xff]), 0, 1, at);
  } finally {
    await file.close();
  }
}

/** Sets the row as if the VM were lost, as after a long absence of its host. The VM still runs. */
async function forget(id: string): Promise<void> {
  const { dataFolder } = crashes.parts;
  await queryDatabase(
    dataFolder,
    'update usage_interval set during = tstzrange(lower(during), now()) where sandbox_id = $1',
    [id],
  );
  await queryDatabase(
    dataFolder,
    `update sandbox set status = 'failed', status_reason_code = 'host_lost',
       status_reason_message = 'its host is away', wakes_from = 'disk'
     where id = $1`,
    [id],
  );
}
