// Time from the create call to a command's output, overhead of the control plane per command, and
// memory of an idle VM. Measured through the public API of a dedicated installation, beside
// gVisor's `runsc run` of the same command in the same run. Usage: npm run bench:create --
// [--creates N] [--burst N] [--execs N] [--json]
import { setTimeout as delay } from 'node:timers/promises';
import { Progress } from '@berth/machine/output/progress.ts';
import type { HostInfo } from '@berth/protocol/calls/vms.ts';
import { guestOf, unsharedMemoryOf } from './world/guest.ts';
import { hardware } from './world/hardware.ts';
import { timed, withWorld } from './world/installation.ts';
import { readOptions } from './world/options.ts';
import { Runsc } from './world/runsc.ts';
import { figuresByKey, measured, renderTable } from './world/statistics.ts';

const COMMAND = 'uname -a';
/** Idle time before the memory of a VM is measured. */
const IDLE_MS = 5_000;

const options = readOptions({
  creates: { type: 'string', default: '15' },
  burst: { type: 'string', default: '4' },
  execs: { type: 'string', default: '20' },
  json: { type: 'boolean', default: false },
});
const creates = options.whole('creates', 1, 1_000);
const burst = options.whole('burst', 1, 1_000);
const execs = options.whole('execs', 1, 1_000);

const ms = {
  create: [] as number[],
  firstExec: [] as number[],
  burst: [] as number[],
  burstFirstExec: [] as number[],
  apiExec: [] as number[],
  guestExec: [] as number[],
  apiAdds: [] as number[],
  runsc: [] as number[],
};
const idle: { vmMib: number; guestMib: number }[] = [];
/** A create from the pool is several times faster. */
let poolReadyAtBurst = 0;
const runsc = await Runsc.open(COMMAND);
let host: HostInfo;
try {
  host = await withWorld(new Progress(), {}, async (world) => {
    const { client, progress } = world;
    /** Creates a sandbox and runs a command in it. */
    const create = async (): Promise<{ id: string; runningMs: number; firstExecMs: number }> => {
      const startedAt = performance.now();
      const id = await client.createAwake();
      const runningMs = performance.now() - startedAt;
      await client.exec(id, COMMAND);
      return { id, runningMs, firstExecMs: performance.now() - startedAt };
    };
    await progress.step(`${creates} creates one after another`, async (report) => {
      // The first one is unmeasured: its code is not yet compiled.
      for (let index = -1; index < creates; index += 1) {
        report(`${index + 1} of ${creates}`);
        const { id, runningMs, firstExecMs } = await create();
        await client.destroy(id);
        if (index < 0) continue;
        ms.create.push(runningMs);
        ms.firstExec.push(firstExecMs);
        ms.runsc.push(await runsc.run());
      }
    });

    await progress.step(`a burst of ${burst} creates, then their idle memory`, async () => {
      poolReadyAtBurst = (await world.host()).pool.ready;
      const created = await Promise.all(Array.from({ length: burst }, create));
      for (const { runningMs, firstExecMs } of created) {
        ms.burst.push(runningMs);
        ms.burstFirstExec.push(firstExecMs);
      }
      await delay(IDLE_MS);
      for (const { id } of created) idle.push(await unsharedMemoryOf(id));
      await Promise.all(created.map(({ id }) => client.destroy(id)));
    });

    await progress.step(`${execs} commands through the API and straight to the guest, in turn`, async () => {
      const id = await client.createAwake();
      const guest = await guestOf(world, id);
      for (let index = -2; index < execs; index += 1) {
        const throughApi = await timed(() => client.exec(id, COMMAND));
        const straight = await timed(() => guest.exec(COMMAND));
        if (index < 0) continue;
        ms.apiExec.push(throughApi);
        ms.guestExec.push(straight);
        ms.apiAdds.push(throughApi - straight);
      }
      guest.close();
      await client.destroy(id);
    });
    return await world.host();
  });
} finally {
  await runsc.close();
}

const rows = [
  measured('createToRunningMs', 'create to running', 'ms', ms.create),
  measured('createToFirstExecMs', 'create to first exec answered', 'ms', ms.firstExec),
  measured('burstToRunningMs', `burst of ${burst}: create to running`, 'ms', ms.burst),
  measured('burstToFirstExecMs', `burst of ${burst}: create to first exec`, 'ms', ms.burstFirstExec),
  measured('apiExecMs', 'exec through the API', 'ms', ms.apiExec),
  measured('guestExecMs', 'exec straight to the guest daemon', 'ms', ms.guestExec),
  measured('apiAddsMs', 'added by the API (pair by pair)', 'ms', ms.apiAdds),
  measured('runscRunMs', 'runsc run (gVisor) of the same', 'ms', ms.runsc),
  measured(
    'idleVmUnsharedMib',
    'idle VM, unshared memory',
    'MiB',
    idle.map(({ vmMib }) => vmMib),
  ),
  measured(
    'idleGuestUnsharedMib',
    "  the guest's share of it",
    'MiB',
    idle.map(({ guestMib }) => guestMib),
  ),
];
const machine = hardware();
const { accelerator, qemuVersion } = host;
console.log(
  `\n${machine}; accelerator ${accelerator}, QEMU ${qemuVersion}, ${runsc.version}; command: ${COMMAND}; ` +
    `${poolReadyAtBurst} VMs ready in the pool when the burst began\n`,
);
console.log(renderTable(rows));
if (options.values.json) {
  const facts = { machine, accelerator, qemuVersion, runscVersion: runsc.version };
  const counts = { creates, burst, poolReadyAtBurst, execs, command: COMMAND };
  console.log(JSON.stringify({ ...figuresByKey(rows), ...counts, ...facts }));
}
