// Crashes are normal: each process is killed with SIGKILL at each step of create and destroy, on real microVMs. After a restart every sandbox is
// awake, failed with its reason, or gone; there is one machine for each awake one and none besides; nothing of the others is left on the machine.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { CRASH_POINTS as API_CRASH_POINTS } from '@berth/api/workers/crash-point.ts';
import { SANDBOX_STATES } from '@berth/contract/sandbox-state.ts';
import type { Sandbox } from '@berth/contract/sandboxes.ts';
import { CRASH_POINTS as HOST_CRASH_POINTS } from '@berth/host/vm/crash-point.ts';
import { call, createSandbox, destroySandbox, exec, getSandbox, listSandboxes, waitForStatus, type CallOptions } from './client.ts';
import { hostVm } from './host-vm.ts';
import { leftoversOf, processesOfVm, vmsWithSlots } from './leftovers.ts';
import { Parts, type PartName } from './parts.ts';

const SETTLE_DEADLINE_MS = 120_000;
const counts = { kills: 0, checked: 0, awake: 0, failed: 0, gone: 0 };
/**
 * What callers were told since the last recovery. `made`: must be there still. `destroyed`: must be deleted. `leaving`: a destroy was sent and
 * not answered, so either will do. None of them may be unknown.
 */
const told = new Map<string, 'made' | 'leaving' | 'destroyed'>();
let createsSent = 0;
let parts: Parts;

before(async () => {
  parts = await Parts.start();
});

after(async () => {
  await parts?.runAll();
  for (const sandbox of await listSandboxes(parts.caller)) await destroySandbox(parts.caller, sandbox.id);
  await parts.stop();
  assert.deepEqual(await leftoversOf(parts.dataFolder), []);
  await parts.remove();
  const { kills, checked, awake, failed, gone } = counts;
  console.log(`${kills} kills, after ${checked} of which nothing was lost, doubled or leaked`);
  console.log(`sandboxes afterwards: ${awake} awake, ${failed} failed with a reason, ${gone} deleted as asked`);
});

for (const point of API_CRASH_POINTS) {
  test(`the API is killed at ${point}`, async () => {
    await crashOf('api', point, storyOf(point));
  });
}

for (const point of HOST_CRASH_POINTS) {
  test(`the host daemon is killed at ${point}`, async () => {
    await crashOf('host', point, storyOf(point));
  });
}

const MOMENTS = {
  'as soon as a create was sent': async (kill: () => Promise<void>) => {
    const sent = attempt(() => make());
    await kill();
    await sent;
  },
  'while a machine is made': async (kill: () => Promise<void>) => {
    const sandbox = await make({ headers: { prefer: 'respond-async' } });
    await until(async () => (await vmsWithSlots(parts.dataFolder)).includes(sandbox.id), 'the machine has its slot');
    await kill();
  },
  'after a create': async (kill: () => Promise<void>) => {
    await makeAwake();
    await kill();
  },
  'as soon as a destroy was sent': async (kill: () => Promise<void>) => {
    const sandbox = await makeAwake();
    const sent = attempt(() => unmake(sandbox.id));
    await kill();
    await sent;
  },
} as const;

for (const [moment, story] of Object.entries(MOMENTS)) {
  test(`Postgres is killed ${moment}`, async () => {
    await story(async () => {
      await parts.kill('database');
      counts.kills += 1;
    });
    await recovered();
  });

  test(`API, host daemon and Postgres are killed together ${moment}`, async () => {
    await story(async () => {
      await Promise.all([parts.kill('api'), parts.kill('host'), parts.kill('database')]);
      counts.kills += 1;
    });
    await recovered();
  });
}

for (const moment of ['while its machine is made', 'when it is awake', 'while it is destroyed'] as const) {
  test(`QEMU is killed ${moment}`, async () => {
    const { caller } = parts;
    const sandbox = await make({ headers: { prefer: 'respond-async' } });
    if (moment !== 'while its machine is made')
      await until(async () => SANDBOX_STATES[(await getSandbox(caller, sandbox.id)).status].awake, 'it is awake');
    const destroyed = moment === 'while it is destroyed' ? attempt(() => unmake(sandbox.id)) : null;
    let pids: number[] = [];
    if (destroyed === null) await until(async () => (pids = await processesOfVm(sandbox.id)).length > 0, 'QEMU runs');
    else pids = await processesOfVm(sandbox.id);
    for (const pid of pids) killIfThere(pid);
    counts.kills += 1;
    await destroyed;
    await until(async () => ['failed', 'deleted'].includes((await getSandbox(caller, sandbox.id)).status), 'it has failed or is gone');
    await recovered();
  });
}

/** What must happen for the step that the point names to be reached. */
function storyOf(point: string): () => Promise<void> {
  if (point.startsWith('destroy:')) {
    return async () => {
      const sandbox = await makeAwake();
      await unmake(sandbox.id);
    };
  }
  if (point.startsWith('lost:')) {
    return async () => {
      const sandbox = await makeAwake();
      for (const pid of await processesOfVm(sandbox.id)) killIfThere(pid);
    };
  }
  if (point.startsWith('reap:')) {
    return async () => {
      const id = `sbx_${[...randomBytes(24)].map((byte) => 'abcdefghijklmnopqrstuvwxyz234567'[byte % 32]).join('')}`;
      await hostVm(parts.paths, id);
    };
  }
  return async () => {
    await make();
  };
}

/** Creates as a caller does, and notes what it was told. */
async function make(options: CallOptions = {}): Promise<Sandbox> {
  createsSent += 1;
  const sandbox = await createSandbox(parts.caller, {}, options);
  told.set(sandbox.id, 'made');
  return sandbox;
}

async function makeAwake(): Promise<Sandbox> {
  const { id } = await make();
  return await waitForStatus(parts.caller, id, ['running', 'ready']);
}

/** Destroys as a caller does, and notes the promise as soon as it was given. */
async function unmake(id: string): Promise<void> {
  told.set(id, 'leaving');
  const { status } = await call(parts.caller, 'POST', `/v1/sandboxes/${id}/destroy`);
  if (status !== 200) throw new Error(`a destroy was answered ${status}`);
  told.set(id, 'destroyed');
  await waitForStatus(parts.caller, id, ['deleted']);
}

/** Runs the story with one part armed, waits for its end, and checks what the restart makes of it. */
async function crashOf(name: PartName, point: string, story: () => Promise<void>): Promise<void> {
  await runArmed(name, point);
  const ending = attempt(story);
  await Promise.race([parts.ended(name), delay(SETTLE_DEADLINE_MS, undefined, { ref: false })]);
  assert.equal(parts.isRunning(name), false, `${point} was not reached\n${parts.log.slice(-3_000)}`);
  counts.kills += 1;
  await parts.run(name);
  await ending;
  await recovered();
}

/**
 * Starts the part armed. A step that an earlier test left may come to the point before the part answers: that is one more kill, and after a
 * recovery the part is armed again.
 */
async function runArmed(name: PartName, point: string): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    await parts.end(name);
    const started = await attempt(() => parts.run(name, point));
    if (!(started instanceof Error)) return;
    if (tries === 3 || !started.message.includes('signal SIGKILL')) throw started;
    counts.kills += 1;
    await recovered();
  }
}

/** Starts what was killed, waits until every sandbox is at rest, compares the service's word with the machine, and cleans up. */
async function recovered(): Promise<void> {
  await parts.runAll();
  const { caller, dataFolder } = parts;
  const promises = [...told];
  const sent = createsSent;
  told.clear();
  createsSent = 0;
  const awake = (sandboxes: readonly Sandbox[]): string[] =>
    sandboxes
      .filter(({ status }) => SANDBOX_STATES[status].awake)
      .map(({ id }) => id)
      .sort();
  let sandboxes: Sandbox[] = [];
  await until(
    async () => {
      const listed = await attempt(() => listSandboxes(caller));
      if (listed instanceof Error) return false;
      sandboxes = listed;
      const settled = sandboxes.every(({ status }) => SANDBOX_STATES[status].awake || status === 'failed');
      const machines = (await vmsWithSlots(dataFolder)).sort();
      return settled && JSON.stringify(machines) === JSON.stringify(awake(sandboxes));
    },
    () =>
      `every sandbox is at rest with its machine: ${JSON.stringify(sandboxes.map(({ id, status }) => ({ id, status })))}\n${parts.log.slice(-4_000)}`,
  );

  for (const sandbox of sandboxes) {
    if (sandbox.status === 'failed') {
      assert.ok((sandbox.statusReason?.message.length ?? 0) > 0, `${sandbox.id} failed without a reason`);
      counts.failed += 1;
    } else {
      assert.equal((await processesOfVm(sandbox.id)).length, 1, `${sandbox.id} has not exactly one QEMU`);
      assert.equal((await exec(caller, sandbox.id, 'echo alive')).stdout, 'alive\n');
      counts.awake += 1;
    }
  }
  for (const [id, what] of promises) {
    const { status } = await getSandbox(caller, id);
    if (status === 'deleted') counts.gone += 1;
    if (what !== 'leaving')
      assert.equal(status === 'deleted', what === 'destroyed', `a caller was told ${what} of ${id}, and it is ${status}`);
  }
  assert.ok(sandboxes.length <= sent, `${sent} creates made ${sandboxes.length} sandboxes`);
  for (const sandbox of sandboxes) assert.equal((await destroySandbox(caller, sandbox.id)).status, 'deleted');
  await until(
    async () => (await leftoversOf(dataFolder, { idle: false })).length === 0,
    () => 'nothing is left of destroyed sandboxes',
    async () => (await leftoversOf(dataFolder, { idle: false })).join(', '),
  );
  counts.checked += 1;
}

/** The value, or the error: a caller of a service that is killed may be told anything or nothing. */
async function attempt<T>(act: () => Promise<T>): Promise<T | Error> {
  try {
    return await act();
  } catch (error) {
    return error as Error;
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function until(
  condition: () => Promise<boolean>,
  what: string | (() => string),
  detail: () => Promise<string> = () => Promise.resolve(''),
): Promise<void> {
  const deadline = Date.now() + SETTLE_DEADLINE_MS;
  while (!(await condition())) {
    if (Date.now() > deadline) {
      throw new Error(`not within ${SETTLE_DEADLINE_MS / 1_000} s: ${typeof what === 'string' ? what : what()} ${await detail()}`);
    }
    await delay(50);
  }
}
