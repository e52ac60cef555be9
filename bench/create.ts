// Time from the create call to a command's output, overhead of the control plane per command, and
// memory of an idle VM. Measured through the public API of a dedicated installation, beside
// gVisor's `runsc run` of the same command in the same run. Usage: npm run bench:create --
// [--creates N] [--burst N] [--execs N] [--json]
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readConfig } from '@berth/machine/config/config.ts';
import { CHECKOUT } from '@berth/machine/config/folders.ts';
import { startInstallation } from '@berth/machine/roles/installation.ts';
import { findFreePort } from '@berth/machine/config/ports.ts';
import { Progress } from '@berth/machine/output/progress.ts';
import { readHostInfo } from '@berth/machine/roles/host/service.ts';
import { Client } from './world/client.ts';
import { guestOf, unsharedMemoryOf } from './world/guest.ts';
import { hardware } from './world/hardware.ts';
import { readOptions } from './world/options.ts';
import { Runsc } from './world/runsc.ts';
import { figureOf, renderTable, rounded, type TableRow } from './world/statistics.ts';

const COMMAND = 'uname -a';
/** Idle time before the memory of a VM is measured. */
const IDLE_MS = 5_000;

const values = readOptions({
  creates: { type: 'string', default: '15' },
  burst: { type: 'string', default: '4' },
  execs: { type: 'string', default: '20' },
  json: { type: 'boolean', default: false },
});
const count = (name: 'creates' | 'burst' | 'execs'): number => {
  const value = Number(values[name]);
  if (!Number.isInteger(value) || value < 1 || value > 1_000)
    throw new Error(`--${name}: '${values[name]}' is not an integer from 1 to 1000`);
  return value;
};
const creates = count('creates');
const burst = count('burst');
const execs = count('execs');

const progress = new Progress();
const signal = AbortSignal.timeout(60 * 60_000);
const dataFolder = await mkdtemp(join(tmpdir(), 'berth-bench-'));
const config = readConfig({ dataDir: dataFolder, port: String(await findFreePort('127.0.0.1')) }, process.env);
const installation = await startInstallation(
  // A single key makes all calls.
  {
    checkout: CHECKOUT,
    config,
    progress,
    environment: { ...process.env, BERTH_REQUESTS_PER_MINUTE: '1000000' },
    onEvent: () => undefined,
  },
  signal,
);
const measured = {
  createToRunningMs: [] as number[],
  createToFirstExecMs: [] as number[],
  apiExecMs: [] as number[],
  guestExecMs: [] as number[],
  apiAddsMs: [] as number[],
  burstToRunningMs: [] as number[],
  burstToFirstExecMs: [] as number[],
  idleVmUnsharedMib: [] as number[],
  idleGuestUnsharedMib: [] as number[],
  runscRunMs: [] as number[],
};
/** A create from the pool is several times faster. */
let poolReadyAtBurst = 0;
try {
  if (!installation.first.created) throw new Error('a new data folder has an account already');
  const { orgId, projectId, token } = installation.first;
  const client = new Client({ url: installation.url, token, orgId, projectId });
  const runsc = await Runsc.open(COMMAND);
  const host = await readHostInfo(installation.paths, signal);
  if (host === null) throw new Error('the host daemon does not answer');
  try {
    await createOnce(client, null); // warm-up: code not yet compiled
    await progress.step(`${creates} creates one after another`, async (report) => {
      for (let index = 0; index < creates; index += 1) {
        report(`${index + 1} of ${creates}`);
        await createOnce(client, measured);
        measured.runscRunMs.push(await runsc.run());
      }
    });

    await progress.step(`a burst of ${burst} creates, then their idle memory`, async () => {
      poolReadyAtBurst = (await readHostInfo(installation.paths, signal))?.pool.ready ?? 0;
      const ids = await Promise.all(
        Array.from({ length: burst }, async () => {
          const startedAt = performance.now();
          const id = await client.createAwake();
          measured.burstToRunningMs.push(performance.now() - startedAt);
          await client.exec(id, COMMAND);
          measured.burstToFirstExecMs.push(performance.now() - startedAt);
          return id;
        }),
      );
      await delay(IDLE_MS);
      for (const id of ids) {
        const { vmMib, guestMib } = await unsharedMemoryOf(id);
        measured.idleVmUnsharedMib.push(vmMib);
        measured.idleGuestUnsharedMib.push(guestMib);
      }
      await Promise.all(ids.map((id) => client.destroy(id)));
    });

    await progress.step(`${execs} commands through the API and straight to the guest, in turn`, async () => {
      const id = await client.createAwake();
      const guest = await guestOf(installation.paths, config.guestCidr, id);
      for (let index = -2; index < execs; index += 1) {
        const throughApi = await timed(() => client.exec(id, COMMAND));
        const straight = await timed(() => guest.exec(COMMAND));
        if (index < 0) continue;
        measured.apiExecMs.push(throughApi);
        measured.guestExecMs.push(straight);
        measured.apiAddsMs.push(throughApi - straight);
      }
      guest.close();
      await client.destroy(id);
    });
  } finally {
    // After a failure too: VMs outlive the service.
    await client.destroyAll();
    client.close();
    await runsc.close();
  }

  const machine = hardware();
  const labels: Record<keyof typeof measured, [string, string]> = {
    createToRunningMs: ['create to running', 'ms'],
    createToFirstExecMs: ['create to first exec answered', 'ms'],
    burstToRunningMs: [`burst of ${burst}: create to running`, 'ms'],
    burstToFirstExecMs: [`burst of ${burst}: create to first exec`, 'ms'],
    apiExecMs: ['exec through the API', 'ms'],
    guestExecMs: ['exec straight to the guest daemon', 'ms'],
    apiAddsMs: ['added by the API (pair by pair)', 'ms'],
    runscRunMs: ['runsc run (gVisor) of the same', 'ms'],
    idleVmUnsharedMib: ['idle VM, unshared memory', 'MiB'],
    idleGuestUnsharedMib: ["  the guest's share of it", 'MiB'],
  };
  const rows: TableRow[] = Object.entries(labels).map(([name, [label, unit]]) => {
    const numbers = measured[name as keyof typeof measured];
    return { label, unit, count: numbers.length, figure: figureOf(numbers) };
  });
  console.log(
    `\n${machine}; accelerator ${host.accelerator}, QEMU ${host.qemuVersion}, ${runsc.version}; command: ${COMMAND}; ` +
      `${poolReadyAtBurst} VMs ready in the pool when the burst began\n`,
  );
  console.log(renderTable(rows));
  if (values.json) {
    const figures = Object.fromEntries(
      Object.entries(measured).map(([name, numbers]) => [name, rounded(figureOf(numbers))]),
    );
    console.log(
      JSON.stringify({
        ...figures,
        creates,
        burst,
        poolReadyAtBurst,
        execs,
        command: COMMAND,
        machine,
        accelerator: host.accelerator,
        qemuVersion: host.qemuVersion,
        runscVersion: runsc.version,
      }),
    );
  }
} finally {
  await installation.stop();
  await rm(dataFolder, { recursive: true, force: true });
}

async function createOnce(client: Client, into: typeof measured | null): Promise<void> {
  const startedAt = performance.now();
  const id = await client.createAwake();
  const runningMs = performance.now() - startedAt;
  await client.exec(id, COMMAND);
  const firstExecMs = performance.now() - startedAt;
  into?.createToRunningMs.push(runningMs);
  into?.createToFirstExecMs.push(firstExecMs);
  await client.destroy(id);
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await act();
  return performance.now() - startedAt;
}
