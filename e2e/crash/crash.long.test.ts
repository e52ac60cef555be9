// Kills each process with SIGKILL at each step of create and destroy, on real microVMs. After a
// restart every sandbox is awake, failed with its reason, or gone. Each awake sandbox has one VM,
// no other VM exists, and the others leave nothing on the host.
import { after, before, test } from 'node:test';
import { CRASH_POINTS as API_CRASH_POINTS } from '@berth/api/workers/steps/crash-point.ts';
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import { CRASH_POINTS as HOST_CRASH_POINTS } from '@berth/host/vm/crash-point.ts';
import { getSandbox } from '../world/client.ts';
import { attempt, CrashHarness } from './harness.ts';
import { queryDatabase } from '../world/database.ts';
import { hostVm } from './host-vm.ts';
import { processesOfVm, vmsWithSlots } from '../world/leftovers.ts';
import { pointsOf } from '../../os/test/crash-points.ts';
import { sampleOf } from '../../os/test/long-run.ts';
import { until } from '../../os/test/until.ts';
import { killIfThere } from '../../os/test/signal-if-there.ts';

/** lifecycle.long.test.ts covers sleep, wake and resize, pool.long.test.ts the pool. */
const API_POINTS = pointsOf(API_CRASH_POINTS, 'step:', 'provision:', 'destroy:', 'lost:', 'reap:');
const HOST_POINTS = pointsOf(HOST_CRASH_POINTS, 'create:', 'destroy:');

/** Newer than the epoch of any destroy here. */
const STRAY_EPOCH = 9;

let crashes: CrashHarness;

before(async () => {
  crashes = await CrashHarness.start();
});

after(async () => {
  await crashes?.end();
});

// The API's and the host's own crash tests kill at each point.
for (const point of sampleOf(API_POINTS)) {
  test(`the API is killed at ${point}`, async () => {
    await crashes.crashOf('api', point, storyOf(point));
  });
}

for (const point of sampleOf(HOST_POINTS)) {
  test(`the host daemon is killed at ${point}`, async () => {
    await crashes.crashOf('host', point, storyOf(point));
  });
}

const MOMENTS = {
  'as soon as a create was sent': async (kill: () => Promise<void>) => {
    const sent = attempt(() => crashes.make());
    await kill();
    await sent;
  },
  'while a machine is made': async (kill: () => Promise<void>) => {
    const sandbox = await crashes.make({ headers: { prefer: 'respond-async' } });
    await until('the machine has its slot', async () =>
      (await vmsWithSlots(crashes.parts.dataFolder)).includes(sandbox.id) ? true : null,
    );
    await kill();
  },
  'after a create': async (kill: () => Promise<void>) => {
    await crashes.makeAwake();
    await kill();
  },
  'as soon as a destroy was sent': async (kill: () => Promise<void>) => {
    const sandbox = await crashes.makeAwake();
    const sent = attempt(() => crashes.destroy(sandbox.id));
    await kill();
    await sent;
  },
} as const;

for (const [moment, story] of Object.entries(MOMENTS)) {
  test(`Postgres is killed ${moment}`, async () => {
    await story(() => crashes.killed('database'));
    await crashes.recovered();
  });

  test(`API, host daemon and Postgres are killed together ${moment}`, async () => {
    await story(() => crashes.killed('api', 'host', 'database'));
    await crashes.recovered();
  });
}

for (const moment of ['while its machine is made', 'when it is awake', 'while it is destroyed'] as const) {
  test(`QEMU is killed ${moment}`, async () => {
    const { caller } = crashes.parts;
    const sandbox = await crashes.make({ headers: { prefer: 'respond-async' } });
    const statusNow = async (): Promise<string> => (await getSandbox(caller, sandbox.id)).status;
    if (moment !== 'while its machine is made') {
      await until('it is awake', async () =>
        SANDBOX_STATES[(await getSandbox(caller, sandbox.id)).status].awake ? true : null,
      );
    }
    const destroyed = moment === 'while it is destroyed' ? attempt(() => crashes.destroy(sandbox.id)) : null;
    let pids: number[] = [];
    if (destroyed === null)
      await until('QEMU runs', async () => ((pids = await processesOfVm(sandbox.id)).length > 0 ? true : null));
    else pids = await processesOfVm(sandbox.id);

    for (const pid of pids) killIfThere(pid);
    crashes.counts.kills += 1;
    await destroyed;
    await until('it has failed or is gone', async () =>
      ['failed', 'deleted'].includes(await statusNow()) ? true : null,
    );
    await crashes.recovered();
  });
}

/** Actions that reach the step named by the crash point. */
function storyOf(point: string): () => Promise<void> {
  if (point.startsWith('destroy:')) {
    return async () => {
      const sandbox = await crashes.makeAwake();
      await crashes.destroy(sandbox.id);
    };
  }
  if (point.startsWith('lost:')) {
    return async () => {
      const sandbox = await crashes.makeAwake();
      for (const pid of await processesOfVm(sandbox.id)) killIfThere(pid);
    };
  }
  if (point.startsWith('reap:')) {
    return async () => {
      const { id } = await crashes.makeAwake();
      await crashes.destroy(id);
      await until('it is deleted', async () =>
        (await getSandbox(crashes.parts.caller, id)).status === 'deleted' ? true : null,
      );
      // Starts a VM for the destroyed sandbox, as a host that forgot the destroy would: with an
      // epoch that its row has and its host accepts.
      await queryDatabase(crashes.parts.dataFolder, 'update sandbox set epoch = $2 where id = $1', [id, STRAY_EPOCH]);
      await hostVm(crashes.parts.paths, id, STRAY_EPOCH);
    };
  }
  return async () => {
    await crashes.make();
  };
}
