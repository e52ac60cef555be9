// A sandbox over many rounds of sleep and wake, with resizes and daemon restarts in between: its
// processes, its open unlinked file, its listening server and its disk survive, and its secret,
// random numbers and clock are fresh.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import {
  awakeSandbox,
  destroySandbox,
  exec,
  getSandbox,
  listSandboxes,
  resizeSandbox,
  sleepSandbox,
  wakeSandbox,
} from '../world/client.ts';
import { usageIntervals } from '../world/database.ts';
import { leftoversOf, processesOfVm, vmsWithSlots } from '../world/leftovers.ts';
import { Parts } from '../world/parts.ts';
import { LONG_RUN } from '../../os/test/long-run.ts';
import { until } from '../../os/test/until.ts';
import { queryWitness, startWitness, TICK_SECONDS, type WitnessReport } from '../world/witness.ts';

/** Each change at least once. */
const ROUNDS = LONG_RUN ? 20 : 7;
/** Far more than a sleep and a wake take. */
const SLEPT_LONG_MS = 20_000;
let parts: Parts;

before(async () => {
  parts = await Parts.start({ environment: { BERTH_POOL_MIN: '1', BERTH_POOL_MAX: '1' } });
});

after(async () => {
  await parts.runAll();
  for (const { id } of await listSandboxes(parts.caller)) await destroySandbox(parts.caller, id);
  await parts.stop();
  assert.deepEqual(await leftoversOf(parts.dataFolder), []);
  await parts.remove();
});

/** Changes between two rounds, in turn. */
const BETWEEN: readonly ((round: number, sandbox: Sandbox) => Promise<unknown>)[] = [
  async () => await parts.kill('host').then(() => parts.run('host')),
  async () => await parts.kill('api').then(() => parts.run('api')),
  async (round, { id }) => await resizeSandbox(parts.caller, id, { vcpu: 1 + (round % 3), memoryGb: 2 + (round % 2) }),
  async () => await parts.restart('host'),
  async (_round, { id, allocated_disk_gb: diskGb }) => await resizeSandbox(parts.caller, id, { diskGb: diskGb + 1 }),
  async () => await parts.restart('api'),
  async () => await parts.kill('database').then(() => parts.run('database')),
];

test(`nothing is lost over ${ROUNDS} rounds of sleep and wake with resizes and restarts between them`, async () => {
  const { caller, dataFolder } = parts;
  const { id } = await awakeSandbox(caller);
  let before = await startWitness(caller, id);
  const written = await exec(
    caller,
    id,
    'head -c 20000000 /dev/urandom > /code/data && sync /code/data && sha256sum /code/data /dev/shm/named/file',
  );
  assert.equal(written.exitCode, 0, written.stderr);
  const seen = { secrets: new Set<string>(), random: new Set<string>() };
  await recordNew(id, seen);

  for (let round = 0; round < ROUNDS; round += 1) {
    // Changes alternate between an awake and an asleep sandbox.
    const change = BETWEEN[round % BETWEEN.length];
    const awakeChange = (round + Math.floor(round / BETWEEN.length)) % 2 === 0;
    if (awakeChange) await change?.(round, await getSandbox(caller, id));
    before = await continues(id, before);
    const lastAskedMs = Date.now();
    const last = await queryWitness(caller, id);

    const asleep = await sleepSandbox(caller, id);
    const asleepMs = Date.now();
    assert.deepEqual([asleep.status, asleep.wakesFrom, asleep.statusReason], ['stopped', 'snapshot', null]);
    assert.deepEqual(await processesOfVm(id), [], 'a sleeping sandbox has a machine');
    // The network slot is released shortly after the response.
    await until('its slot is free', async () => ((await vmsWithSlots(dataFolder)).includes(id) ? null : true));
    if (!awakeChange) await change?.(round, await getSandbox(caller, id));
    // A clock that ran during a short sleep could hide in the duration of the verbs.
    if (round === 0) await delay(SLEPT_LONG_MS);
    const wakeSentMs = Date.now();
    const awake = await wakeSandbox(caller, id);
    assert.deepEqual(
      [awake.wakesFrom, awake.lastWake?.from, awake.lastWake?.reason],
      [null, 'snapshot', null],
      `round ${round}`,
    );
    assert.equal(awake.pendingAllocation, undefined);

    before = await continues(id, last);
    // The guest's monotonic clock was paused: it counts run time, not sleep time.
    const ranSeconds = before.monotonicSeconds - last.monotonicSeconds;
    // Counted from its start: on a busy host the timer may be behind, and then catches up.
    const due = (before.monotonicSeconds - before.startedSeconds) / TICK_SECONDS;
    assert.ok(before.ticks <= due + 2, `${before.ticks} ticks where ${due} were due`);
    // Upper bound: from the last request to the sleep's response, plus from the wake request on.
    const awakeSeconds = (asleepMs - lastAskedMs + Date.now() - wakeSentMs) / 1_000;
    assert.ok(ranSeconds <= awakeSeconds + 0.5, `its clock ran ${ranSeconds} s in ${awakeSeconds} s`);
    assert.ok(Math.abs(before.unixSeconds - Date.now() / 1_000) < 10, `the guest's clock says ${before.unixSeconds}`);
    await recordNew(id, seen);
    await hasItsSize(id);
  }
  const read = await exec(caller, id, 'sha256sum /code/data /dev/shm/named/file');
  assert.equal(read.stdout, written.stdout);
  assert.equal((await destroySandbox(caller, id)).status, 'deleted');

  const intervals = (await usageIntervals(dataFolder)).filter(({ sandboxId }) => sandboxId === id);
  assert.ok(intervals.length > ROUNDS && intervals.every(({ toMs }) => toMs !== null), JSON.stringify(intervals));
});

/** The witness continues: the same process with the same memory, further on. */
async function continues(id: string, before: WitnessReport): Promise<WitnessReport> {
  const now = await queryWitness(parts.caller, id);
  assert.deepEqual([now.pid, now.first, now.digest], [before.pid, before.first, before.first]);
  assert.equal(now.connections, before.connections + 1);
  assert.ok(now.ticks > before.ticks, `it ticked ${before.ticks} and then ${now.ticks} times`);
  return now;
}

/** Values that each wake must change: the guest daemon's secret, and random numbers. */
async function recordNew(id: string, seen: { secrets: Set<string>; random: Set<string> }): Promise<void> {
  const secret = await readFile(join(parts.dataFolder, 'host', 'vms', id, 'guest-secret'), 'utf8');
  assert.ok(!seen.secrets.has(secret), 'the guest has a secret that it had before');
  seen.secrets.add(secret);
  const { stdout } = await exec(
    parts.caller,
    id,
    'cat /proc/sys/kernel/random/uuid; python3 -c "import os; print(os.urandom(16).hex())"; ' +
      'node -p "crypto.randomUUID()"',
  );
  const values = stdout.trim().split('\n');
  assert.equal(values.length, 3, stdout);
  for (const value of values) {
    assert.ok(!seen.random.has(value), `${value} came a second time`);
    seen.random.add(value);
  }
}

/** The guest has the size that the API shows. */
async function hasItsSize(id: string): Promise<void> {
  const {
    allocated_vcpu: vcpu,
    allocated_memory_gb: memoryGb,
    allocated_disk_gb: diskGb,
  } = await getSandbox(parts.caller, id);
  const { stdout } = await exec(
    parts.caller,
    id,
    "nproc; awk '/^MemTotal/ {print $2}' /proc/meminfo; df -k --output=size / | tail -1",
  );
  const [processors = 0, memoryKib = 0, diskKib = 0] = stdout.trim().split('\n').map(Number);
  assert.equal(processors, vcpu);
  const memoryMib = memoryKib / 1_024;
  assert.ok(
    memoryMib > memoryGb * 1_024 * 0.85 && memoryMib <= memoryGb * 1_024,
    `${memoryMib} MiB of ${memoryGb} GiB`,
  );
  assert.ok(diskKib > diskGb * 2 ** 20 * 0.93 && diskKib <= diskGb * 2 ** 20, `${diskKib} KiB of ${diskGb} GiB`);
}
