// Creates that fail after the service accepted them, and requests that were never sent.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exampleSandbox } from '@berth/contract/route/examples.ts';
import { Berth, type BerthError, type SandboxData, type SandboxSpec } from '../src/index.ts';
import { freePort } from '../../protocol/test/free-port.ts';
import { notePauses } from './clock.ts';
import { against, broken, failureOf, json, refusal, type Answer } from './scripted-server.ts';

const SPEC: SandboxSpec = { agent: 'agent_one' };
const { id } = exampleSandbox;
const at = (status: string, reason: string | null = null): Answer =>
  json(200, {
    sandbox: { ...exampleSandbox, status, statusReason: reason === null ? null : { code: reason, message: 'no room' } },
  });
const shown = ({ code, sandboxId, retryable }: BerthError): unknown[] => [code, sandboxId, retryable];

test('a create polls on while the service restarts, longer than the retries of a read', async (t) => {
  notePauses(t);
  const restart = [
    ...Array.from({ length: 12 }, () => broken),
    refusal(503, 'shutting_down'),
    (_: unknown, response: Parameters<Answer>[1]) => void response.writeHead(502).end('<html>'),
  ];
  const { berth, seen } = await against(t, [at('provisioning'), at('provisioning'), ...restart, at('ready')]);
  const sandbox = await berth.sandboxes.create(SPEC);
  assert.deepEqual([sandbox.id, sandbox.status], [id, 'ready']);
  assert.equal(seen.filter(({ method }) => method === 'POST').length, 1);
});

test('a create whose service does not return times out with the sandbox and the last failure', async (t) => {
  const { berth } = await against(t, [at('provisioning'), broken], { maxRetries: 0 });
  const error = await failureOf(berth.sandboxes.create(SPEC, { timeoutMs: 700 }));
  assert.deepEqual(shown(error), ['timeout', id, false]);
  assert.match(
    error.message,
    new RegExp(`waiting for sandbox ${id} .* took longer than .*; the last poll failed: GET`),
  );
});

test('a poll honours Retry-After', async (t) => {
  const pauses = notePauses(t);
  const limited = refusal(429, 'rate_limited', { 'retry-after': '5' });
  const { berth } = await against(t, [at('provisioning'), limited, at('ready')], { maxRetries: 0 });
  assert.equal((await berth.sandboxes.create(SPEC)).status, 'ready');
  assert.deepEqual(
    pauses.filter((ms) => ms > 0),
    [100, 5_000],
  );
});

test('a poll that fails for good ends the create with the sandbox in the error', async (t) => {
  notePauses(t);
  const { berth, seen } = await against(t, [at('provisioning'), refusal(401, 'unauthenticated')]);
  const error = await failureOf(berth.sandboxes.create(SPEC));
  assert.deepEqual([...shown(error), error.status, error.requestId], ['unauthenticated', id, false, 401, 'req_1']);
  assert.equal(seen.length, 2);
});

for (const [what, answers] of [
  ['while the create waits', [at('provisioning'), at('failed', 'insufficient_capacity')]],
  ['within the response', [at('failed', 'insufficient_capacity')]],
] as const) {
  test(`a sandbox that fails ${what} is deleted, and a retry is safe`, async (t) => {
    notePauses(t);
    const { berth, seen } = await against(t, [...answers, at('destroying')]);
    const error = await failureOf(berth.sandboxes.create(SPEC));
    assert.deepEqual(shown(error), ['unexpected_status', id, true]);
    assert.match(error.message, /is failed, not running: no room \(insufficient_capacity\); it was deleted$/);
    const { method, path } = seen.at(-1) ?? {};
    assert.deepEqual([method, path], ['POST', `/v1/sandboxes/${id}/destroy`]);
  });
}

test('with an idempotency key only a sandbox that never ran is deleted, and no retry is offered', async (t) => {
  notePauses(t);
  for (const [reason, deletes] of [
    ['create_failed', 1],
    ['qemu_crash', 0],
  ] as const) {
    const { berth, seen } = await against(t, [at('failed', reason), at('destroying')]);
    const error = await failureOf(berth.sandboxes.create(SPEC, { idempotencyKey: 'order-1' }));
    assert.deepEqual(shown(error), ['unexpected_status', id, false]);
    assert.equal(seen.filter(({ path }) => path.endsWith('/destroy')).length, deletes, reason);
  }
});

test('a failed sandbox that cannot be deleted is named with the reason', async (t) => {
  notePauses(t);
  const { berth } = await against(t, [at('failed', 'create_failed'), refusal(403, 'permission_denied')]);
  const error = await failureOf(berth.sandboxes.create(SPEC));
  assert.deepEqual(shown(error), ['unexpected_status', id, false]);
  assert.match(error.message, /\(create_failed\); it could not be deleted: no: permission_denied$/);
});

test('a resize in progress is awaited; one that waits for the next wake is not', async (t) => {
  notePauses(t);
  const pending = { pendingAllocation: { vcpu: 4, memoryGb: 1, diskGb: 10 } };
  const sized = (more: Partial<SandboxData>) =>
    json(200, { sandbox: { ...exampleSandbox, id, status: 'ready', ...more } });
  const { berth, seen } = await against(t, [
    ...[at('ready'), sized({ ...pending, resizing: true }), sized({ ...pending, resizing: true })],
    ...[sized({ allocated_vcpu: 4 }), sized(pending)],
  ]);
  const sandbox = await berth.sandboxes.get(id);
  assert.equal((await sandbox.resize({ vcpu: 4 })).data.allocated_vcpu, 4);
  assert.equal(seen.length, 4);
  assert.equal((await sandbox.resize({ vcpu: 4 })).data.pendingAllocation?.vcpu, 4);
  assert.equal(seen.length, 5);
});

test('a wake or sleep that ends in another status names the sandbox and deletes nothing', async (t) => {
  notePauses(t);
  const { berth, seen } = await against(t, [at('stopped'), at('waking'), at('failed', 'disk_lost')]);
  const sandbox = await berth.sandboxes.get(id);
  assert.deepEqual(shown(await failureOf(sandbox.wake())), ['unexpected_status', id, false]);
  assert.equal(seen.length, 3);
});

test('a refused or unresolved connection is reported as not sent, and a retry is safe', async () => {
  const port = await freePort();
  for (const [url, why] of [
    [`http://127.0.0.1:${port}`, 'ECONNREFUSED'],
    [`http://localhost:${port}`, ''],
    ['http://nothing.invalid', 'ENOTFOUND|EAI_AGAIN'],
  ] as const) {
    const berth = new Berth({ url, apiKey: 'brt_key', orgId: 'org_1', projectId: 'prj_1', maxRetries: 0 });
    for (const call of [
      () => berth.sandboxes.create(SPEC),
      () => berth.projects.update('prj_1', { name: 'x' }),
      () => berth.me(),
    ]) {
      const error = await failureOf(call());
      assert.deepEqual([error.code, error.retryable, error.sandboxId], ['connection_failed', true, undefined]);
      assert.equal(error.unsent, true);
      assert.match(error.message, new RegExp(`no connection: .*(?:${why}).*\\. The request was not sent$`));
      assert.doesNotMatch(error.message, /may have been/);
    }
  }
});
