// Obstacles of a wake: open connection, damaged snapshot, dead VM; and the verbs' old names.
import assert from 'node:assert/strict';
import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { sandboxAnswer } from '@berth/contract/sandboxes/sandboxes.ts';
import {
  act,
  awakeSandbox,
  call,
  destroySandbox,
  errorOf,
  exec,
  getSandbox,
  sleepSandbox,
  waitForStatus,
  wakeSandbox,
} from '../world/client.ts';
import { activityOf, usageIntervals } from '../world/database.ts';
import { instanceForTests } from '../world/instance.ts';
import { until } from '../../os/test/until.ts';
import { queryWitness, connectToWitness, startWitness } from '../world/witness.ts';

const GUEST_CIDR = '10.200.0.0/16';
/** A VM that dies by itself is noticed within this time. */
const NOTICED_MS = 5_000;

const berth = instanceForTests('wake');

test('a connection open when the sandbox fell asleep fails at once after the wake', async () => {
  const { id } = await awakeSandbox(berth);
  await startWitness(berth, id);
  const socket = await connectToWitness(berth.dataFolder, GUEST_CIDR, id);
  await until(
    'the witness holds the connection',
    async () => ((await queryWitness(berth, id)).holding === 1 ? true : null),
    20_000,
  );
  await sleepSandbox(berth, id);
  await wakeSandbox(berth, id);
  // A connection that is not aborted would hang as long as its other end is silent: for ever.
  const ended = await until(
    'the connection has ended inside',
    async () => {
      const said = await queryWitness(berth, id);
      return said.holding === 0 ? said.ended : null;
    },
    10_000,
  );
  assert.equal(ended.length, 1);
  assert.match(ended[0] ?? '', /^Connection\w+Error$/);
  socket.destroy();
  const again = await connectToWitness(berth.dataFolder, GUEST_CIDR, id);
  await until(
    'the woken machine takes connections',
    async () => ((await queryWitness(berth, id)).holding === 1 ? true : null),
    20_000,
  );
  again.destroy();
  await destroySandbox(berth, id);
});

test('a damaged snapshot is not used: the sandbox boots from its disk and reports it', async () => {
  const { id } = await awakeSandbox(berth);
  await startWitness(berth, id);
  await exec(berth, id, 'echo kept > /code/kept && sync /code/kept /code; echo lost > /dev/shm/lost');
  await sleepSandbox(berth, id);
  await damageLargestFile(join(berth.dataFolder, 'host', 'vms', id, 'snapshot'));
  const awake = await wakeSandbox(berth, id);
  assert.equal(awake.lastWake?.from, 'disk');
  assert.ok((awake.lastWake?.reason?.length ?? 0) > 0);
  assert.deepEqual((await exec(berth, id, 'cat /code/kept; test -e /dev/shm/lost; echo $?')).stdout, 'kept\n1\n');
  const told = (await activityOf(berth.dataFolder, id)).filter(({ details }) =>
    JSON.stringify(details).includes('"disk"'),
  );
  assert.ok(told.length > 0, 'the activity does not say that it woke from its disk');

  // A sandbox booted from disk sleeps and wakes like any other.
  await startWitness(berth, id);
  await sleepSandbox(berth, id);
  assert.equal((await wakeSandbox(berth, id)).lastWake?.from, 'snapshot');
  await queryWitness(berth, id);
  await destroySandbox(berth, id);
});

test('a killed VM fails its sandbox with the reason within 5 s, and a wake restores its files', async () => {
  const { id } = await awakeSandbox(berth);
  await exec(berth, id, 'echo kept > /code/kept && sync /code/kept /code');
  process.kill(await berth.qemuPid(id), 'SIGKILL');
  const killedAtMs = Date.now();
  const failed = await waitForStatus(berth, id, ['failed'], NOTICED_MS);
  assert.ok((failed.statusReason?.message.length ?? 0) > 0);
  assert.equal(failed.wakesFrom, 'disk');
  const [interval] = (await usageIntervals(berth.dataFolder)).filter(({ sandboxId }) => sandboxId === id);
  assert.ok(
    interval !== undefined && interval.toMs !== null && interval.toMs <= killedAtMs + 1_000,
    JSON.stringify(interval),
  );
  assert.match(errorOf(await call(berth, 'POST', `/v1/sandboxes/${id}/sleep`), 409).message, /failed/);

  const awake = await wakeSandbox(berth, id);
  assert.equal(awake.lastWake?.from, 'disk');
  assert.equal((await exec(berth, id, 'cat /code/kept')).stdout, 'kept\n');
  await destroySandbox(berth, id);
});

test('a repeated sleep returns the same sandbox; a wake of an awake sandbox is a 400', async () => {
  const { id } = await awakeSandbox(berth);
  assert.match(errorOf(await call(berth, 'POST', `/v1/sandboxes/${id}/wake`), 400).code, /^wake_not_possible$/);
  const asleep = await sleepSandbox(berth, id);
  assert.deepEqual(await act(berth, id, 'sleep'), asleep);
  assert.match(
    errorOf(await call(berth, 'POST', `/v1/sandboxes/${id}/exec`, { command: 'true' }), 409).message,
    /stopped.*(running|ready)/,
  );
  await destroySandbox(berth, id);
});

test('the old names stop and resume still work and report their deprecation', async () => {
  const { id } = await awakeSandbox(berth);
  for (const [alias, verb, status] of [
    ['stop', 'sleep', ['sleeping', 'stopped']],
    ['resume', 'wake', ['waking', 'running', 'ready']],
  ] as const) {
    const answer = await call(berth, 'POST', `/v1/sandboxes/${id}/${alias}`);
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get('deprecation') ?? '', /^@\d+$/);
    assert.match(
      answer.headers.get('link') ?? '',
      new RegExp(`</v1/sandboxes/${id}/${verb}>; *rel="successor-version"`),
    );
    assert.ok((status as readonly string[]).includes(sandboxAnswer.parse(answer.body).sandbox.status));
    await waitForStatus(berth, id, [status.at(-1) ?? '']);
  }
  assert.equal((await getSandbox(berth, id)).lastWake?.from, 'snapshot');
  await destroySandbox(berth, id);
});

/** Flips a byte in the middle of the largest file of a folder. */
async function damageLargestFile(folder: string): Promise<void> {
  const files = await Promise.all(
    (await readdir(folder)).map(async (name) => ({ name, bytes: (await stat(join(folder, name))).size })),
  );
  const largest = files.sort((a, b) => b.bytes - a.bytes)[0];
  assert.ok(largest !== undefined && largest.bytes > 1_048_576, JSON.stringify(files));
  const file = await open(join(folder, largest.name), 'r+');
  try {
    const at = Math.floor(largest.bytes / 2);
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, at);
    await file.write(Buffer.from([(buffer[0] ?? 0) ^ 0xff]), 0, 1, at);
  } finally {
    await file.close();
  }
}
