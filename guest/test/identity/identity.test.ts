// Callers that may talk to the daemon; between two identities, none may use the guest.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { guestHealth, guestIdentityResult } from '@berth/protocol/calls/identity.ts';
import { Secret } from '../../src/access/secret.ts';
import { makeIdentity, startDaemon } from '../daemon.ts';

const [first, second] = ['a'.repeat(43), 'b'.repeat(43)] as const;
const run = { command: 'echo hi', timeoutSeconds: 5 };

test('a template accepts the first identity and returns its state', async (t) => {
  const daemon = await startDaemon(t);
  assert.equal((await daemon.call('POST', '/exec', run)).status, 200);
  const identity = makeIdentity({ secret: first });
  const answer = await daemon.call('POST', '/identity', identity);
  assert.equal(answer.status, 200);
  const { hostname, machineId, vcpu, memoryMib, diskGib } = guestIdentityResult.parse(JSON.parse(answer.text));
  assert.deepEqual({ ...identity, hostname, machineId, vcpu, memoryMib, diskGib }, identity);
});

test('once a secret exists every call needs it, and the next identity replaces it', async (t) => {
  const daemon = await startDaemon(t);
  assert.equal((await daemon.call('POST', '/identity', makeIdentity({ secret: first }))).status, 200);
  const calls = [
    ['POST', '/identity', makeIdentity({ secret: second })],
    ['POST', '/exec', run],
    ['GET', '/health', undefined],
    ['GET', '/nothing', undefined],
  ] as const;
  for (const [method, path, body] of calls) {
    for (const wrong of [undefined, second, '', `${first}a`, first.slice(1), 'ü'.repeat(3)]) {
      const answer = await daemon.call(method, path, body, wrong);
      assert.equal(answer.status, 401, `${path} with ${wrong}`);
      assert.match(answer.text, /secret of the machine/);
    }
  }
  assert.equal((await daemon.call('POST', '/exec', run, first)).status, 200);
  guestHealth.parse(JSON.parse((await daemon.call('GET', '/health', undefined, first)).text));

  assert.equal((await daemon.call('POST', '/identity', makeIdentity({ secret: second }), first)).status, 200);
  assert.equal((await daemon.call('POST', '/exec', run, first)).status, 401);
  assert.equal((await daemon.call('POST', '/exec', run, second)).status, 200);
});

test('a restarted daemon still has its secret and leaves no usable copy of it', async (t) => {
  const daemon = await startDaemon(t);
  await daemon.call('POST', '/identity', makeIdentity({ secret: first }));
  await daemon.stop('SIGKILL');
  await daemon.start();
  assert.equal((await daemon.call('POST', '/exec', run)).status, 401);
  assert.equal((await daemon.call('POST', '/exec', run, first)).status, 200);
  const path = join(daemon.folder, 'run', 'secret');
  assert.equal((await readFile(path, 'utf8')).includes(first), false);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.equal((await stat(join(daemon.folder, 'run'))).mode & 0o777, 0o700);
});

test('a daemon with a damaged secret does not start', async (t) => {
  const daemon = await startDaemon(t);
  await daemon.call('POST', '/identity', makeIdentity({ secret: first }));
  await daemon.stop('SIGKILL');
  await writeFile(join(daemon.folder, 'run', 'secret'), 'x');
  await assert.rejects(daemon.start(), /secret is damaged/);
});

test('a VM with an incomplete identity rejects all calls, and accepts the identity again', async (t) => {
  const daemon = await startDaemon(t);
  await daemon.stop('SIGKILL');
  new Secret(join(daemon.folder, 'run', 'secret')).begin(first);
  await daemon.start();
  assert.equal((await daemon.call('POST', '/exec', run)).status, 401);
  for (const [method, path] of [
    ['POST', '/exec'],
    ['GET', '/health'],
  ] as const) {
    const answer = await daemon.call(method, path, method === 'POST' ? run : undefined, first);
    assert.equal(answer.status, 503);
    assert.match(answer.text, /identity of this machine is not applied/);
  }
  assert.equal((await daemon.call('POST', '/identity', makeIdentity({ secret: second }), first)).status, 200);
  assert.equal((await daemon.call('POST', '/exec', run, second)).status, 200);
});

test("a secret's state is read back only if whole", async () => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-secret-'));
  try {
    const path = join(folder, 'secret');
    assert.equal(new Secret(path).state, 'none');
    assert.equal(new Secret(path).accepts(undefined), true);
    assert.throws(() => new Secret(path).complete(), /no secret/);
    const secret = new Secret(path);
    secret.begin(first);
    assert.deepEqual([secret.state, new Secret(path).state], ['incomplete', 'incomplete']);
    secret.complete();
    assert.deepEqual([secret.state, new Secret(path).state], ['complete', 'complete']);
    for (const each of [secret, new Secret(path)]) {
      assert.deepEqual(
        [undefined, '', first, `Bearer ${second}`, `Bearer ${first}`].map((header) => each.accepts(header)),
        [false, false, false, false, true],
      );
    }
    for (const damaged of [
      '',
      'x',
      `${'0'.repeat(64)} complete`,
      `${'0'.repeat(63)} complete\n`,
      `${'0'.repeat(64)} none\n`,
    ]) {
      await writeFile(path, damaged);
      assert.throws(() => new Secret(path), /damaged/);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});
