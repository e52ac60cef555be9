// A daemon whose guest resumes after a sleep: who may wake it, with which secret; nothing runs
// before the wake is complete.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { guestSizeResult } from '@berth/protocol/calls/identity.ts';
import { guestMetrics } from '@berth/protocol/calls/metrics.ts';
import { Secret } from '../../src/access/secret.ts';
import { makeIdentity, makeWake, startDaemon, until } from '../daemon.ts';

const [first, second, third] = ['a'.repeat(43), 'b'.repeat(43), 'c'.repeat(43)] as const;
const run = { command: 'echo hi', timeoutSeconds: 5 };
const size = { vcpu: 2, memoryMib: 2_048, diskGib: 20 };

test('a wake needs the current secret, replaces it and returns the size', async (t) => {
  const daemon = await startDaemon(t);
  await daemon.call('POST', '/identity', makeIdentity({ secret: first }));
  for (const wrong of [undefined, second, third])
    assert.equal((await daemon.call('POST', '/wake', makeWake({ secret: second }), wrong)).status, 401);

  assert.equal((await daemon.call('POST', '/exec', run, first)).status, 200);

  const answer = await daemon.call('POST', '/wake', makeWake({ secret: second, ...size }), first);
  assert.equal(answer.status, 200, answer.text);
  const { clockUnixMs, ...reached } = guestSizeResult.parse(JSON.parse(answer.text));
  assert.deepEqual(reached, size);
  assert.ok(Math.abs(clockUnixMs - Date.now()) < 60_000);
  assert.equal((await daemon.call('POST', '/exec', run, first)).status, 401);
  assert.equal((await daemon.call('POST', '/exec', run, second)).status, 200);
});

test('a repeated wake is accepted with the old or the new secret if its content is the same', async (t) => {
  const daemon = await startDaemon(t);
  await daemon.call('POST', '/identity', makeIdentity({ secret: first }));
  const wake = makeWake({ secret: second });
  for (const known of [first, first, second, undefined, third])
    assert.equal((await daemon.call('POST', '/wake', wake, known)).status, 200, String(known));

  // The old secret cannot install a third.
  assert.equal((await daemon.call('POST', '/wake', makeWake({ secret: third }), first)).status, 401);
  assert.equal((await daemon.call('POST', '/exec', run, second)).status, 200);
});

test('a VM without a secret, as after a disk boot, accepts the first wake', async (t) => {
  const daemon = await startDaemon(t);
  assert.equal((await daemon.call('POST', '/wake', makeWake({ secret: first }))).status, 200);
  assert.equal((await daemon.call('POST', '/exec', run)).status, 401);
  assert.equal((await daemon.call('POST', '/exec', run, first)).status, 200);
});

test('a VM with an incomplete wake rejects all calls until it is woken', async (t) => {
  const daemon = await startDaemon(t);
  await daemon.call('POST', '/identity', makeIdentity({ secret: first }));
  await daemon.stop('SIGKILL');
  new Secret(join(daemon.folder, 'run', 'secret')).begin(second);
  await daemon.start();
  for (const [method, path, body] of [
    ['POST', '/exec', run],
    ['POST', '/size', size],
    ['GET', '/metrics', undefined],
    ['GET', '/health', undefined],
  ] as const)
    assert.equal((await daemon.call(method, path, body, second)).status, 503, path);

  assert.equal((await daemon.call('POST', '/wake', makeWake({ secret: second }), first)).status, 200);
  assert.equal((await daemon.call('POST', '/exec', run, second)).status, 200);
});

test('a caller without the secret cannot send a long body', async (t) => {
  const daemon = await startDaemon(t);
  await daemon.call('POST', '/identity', makeIdentity({ secret: first }));
  const answer = await daemon.open('POST', '/wake', JSON.stringify({ secret: 'x'.repeat(100_000) })).answer;
  assert.equal(answer.status, 413);
  assert.equal((await daemon.call('GET', '/wake')).status, 401);
});

test('the size is returned only with the secret', async (t) => {
  const daemon = await startDaemon(t);
  await daemon.call('POST', '/identity', makeIdentity({ secret: first }));
  assert.equal((await daemon.call('POST', '/size', size)).status, 401);
  const answer = await daemon.call('POST', '/size', size, first);
  const { clockUnixMs: _, ...reached } = guestSizeResult.parse(JSON.parse(answer.text));
  assert.deepEqual(reached, size);
});

test('metrics count running processes and need the secret', async (t) => {
  const daemon = await startDaemon(t);
  await daemon.call('POST', '/identity', makeIdentity({ secret: first }));
  assert.equal((await daemon.call('GET', '/metrics')).status, 401);
  const read = async () => {
    const answer = await daemon.call('GET', '/metrics', undefined, first);
    assert.equal(answer.status, 200, answer.text);
    return guestMetrics.parse(JSON.parse(answer.text));
  };
  const before = await read();
  assert.ok(before.memoryUsedMib > 0 && before.memoryUsedMib < before.memoryTotalMib);
  assert.ok(before.diskUsedMib > 0 && before.diskUsedMib <= before.diskTotalMib);
  assert.ok(before.processes >= 2 && before.vcpu >= 1);
  // CPU time of a command shows in the counters.
  const busy = daemon.open(
    'POST',
    '/exec',
    JSON.stringify({ ...run, command: 'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done' }),
    first,
  );
  assert.equal((await busy.answer).status, 200);
  await until('processor time is counted', async () => (await read()).cpuBusyMs > before.cpuBusyMs);
  assert.ok((await read()).uptimeSeconds >= before.uptimeSeconds);
});
