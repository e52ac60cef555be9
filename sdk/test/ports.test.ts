// Ports of a sandbox on the real service: waits, and previews for programs.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { Berth, BerthError, type Sandbox } from '../src/index.ts';
import { ExecRefusal } from '../../api/test/world/guests/exec-refusal.ts';
import { untilTrue } from '../../os/test/until.ts';
import { startPreview } from '../../api/test/preview/world.ts';
import { realWorld, type RealWorld } from './worlds.ts';

let world: RealWorld;
let berth: Berth;
let sandbox: Sandbox;
/** Attempts to connect, by port. */
let attempts: number[];
let open: number;
before(async () => {
  world = await realWorld();
  berth = world.client({ maxRetries: 0 });
  sandbox = await berth.sandboxes.create({ agent: 'agent_one' });
});
after(() => world.close());
beforeEach(() => {
  attempts = [];
  open = 0;
  world.setStream((_vmId, target) => {
    attempts.push(Number(target.replace('ports/', '')));
    if (!attempts.includes(open)) throw new ExecRefusal('port_refused', 'words of the host');
    return (stream) => {
      connections += 1;
      stream
        .resume()
        .once('end', () => stream.destroy())
        .once('close', () => (connections -= 1));
    };
  });
});
/** Open connections to the port. */
let connections = 0;

const failing = (code: string, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof BerthError, String(error));
  assert.equal(error.code, code, error.message);
  assert.match(error.message, message);
  return true;
};

test('a wait for a port ends once a program listens, and leaves no connection', async () => {
  const waiting = sandbox.waitForPort(3000);
  await untilTrue('it has tried twice', () => attempts.length >= 2);
  open = 3000;
  await waiting;
  await untilTrue('no connection is left', () => connections === 0);
  assert.ok(attempts.length < 20, `${attempts.length} attempts`);
});

test('a wait for a port fails at its timeout, and names the port and the last failure', async () => {
  await assert.rejects(
    sandbox.waitForPort(3000, { timeoutMs: 600 }),
    failing(
      'timeout',
      /^waiting for port 3000 of sandbox sbx_\w+ took longer than 600 ms: nothing listens on port 3000 /,
    ),
  );
  // 100, 150, 225 ms, ...
  assert.ok(attempts.length <= 5, `${attempts.length} attempts`);
});

test('a wait for a port fails at once for a reason that does not pass', async () => {
  world.setStream(() => {
    throw new ExecRefusal('port_forbidden', 'words of the host');
  });
  await assert.rejects(sandbox.waitForPort(1024), failing('port_forbidden', /reserved/));
  await assert.rejects(sandbox.waitForPort(0), failing('invalid_request', /from 1 to 65535/));
  await assert.rejects(berth.sandboxes.streams('sbx_nothing').waitForPort(1), failing('sandbox_not_found', /./));
});

test('an aborted wait for a port rejects with the reason and tries no more', async () => {
  const controller = new AbortController();
  const waiting = sandbox.waitForPort(3000, { signal: controller.signal });
  await untilTrue('it has tried', () => attempts.length > 0);
  const reason = new Error('a reason of the test');
  controller.abort(reason);
  await assert.rejects(waiting, reason);
});

test('the end of the given process ends the wait, with exit code and last output', async () => {
  const server = await sandbox.spawn('serve');
  const guest = world.guests.get(sandbox.id, server.id);
  const waiting = sandbox.waitForPort(3000, { process: server });
  await untilTrue('it has tried', () => attempts.length > 0);
  guest?.write('stderr', `${'x'.repeat(10_000)}\nError: no such module\n`);
  guest?.end({ exitCode: 3 });
  await assert.rejects(
    waiting,
    failing('process_exited', /exited with code 3 before port 3000 .*\nx{1,2048}\nError: no such module$/s),
  );
  assert.equal(server.data.exitCode, 3);
  const silent = await sandbox.spawn('serve');
  world.guests.get(sandbox.id, silent.id)?.end({ signal: 'SIGKILL' });
  await assert.rejects(
    sandbox.waitForPort(3000, { process: silent }),
    failing('process_exited', /exited with SIGKILL .* It wrote nothing$/),
  );
});

test('a process that runs on does not disturb the wait', async () => {
  open = 3000;
  const server = await sandbox.spawn('serve');
  await sandbox.waitForPort(3000, { process: server });
  await untilTrue('no connection is left', () => connections === 0);
});

test('a program opens links for everyone and for the team by headers, which the app does not get', async (t) => {
  const got: string[] = [];
  const preview = await startPreview((request, response) => {
    got.push(JSON.stringify([request.url, request.headers]));
    response.end('app');
  });
  t.after(() => preview.close());
  const { url, token: apiKey } = preview.api;
  const inside = await new Berth({ url, apiKey }).sandboxes.get(preview.sandboxId);
  for (const audience of ['public', 'team'] as const) {
    const link = await inside.previews.create({ port: 3000, audience });
    preview.api.secret(new URL(link.url ?? '').searchParams.get('token') ?? '');
    const access = await inside.previews.forProgram(link);
    assert.equal(access.url, `${url}/`);
    const response = await fetch(new URL('/v1/me?a=1', access.url), { headers: access.headers });
    assert.deepEqual([response.status, await response.text()], [200, 'app'], audience);
    assert.match(got.at(-1) ?? '', /^\["\/v1\/me\?a=1",/);
    for (const secret of Object.values(access.headers).filter((value) => !value.includes('.')))
      assert.ok(!got.at(-1)?.includes(secret));
  }
  const link = await inside.previews.create({ port: 3000, audience: 'public' });
  preview.api.secret(new URL(link.url ?? '').searchParams.get('token') ?? '');
  const revoked = await inside.previews.revoke(link.id ?? '');
  await assert.rejects(inside.previews.forProgram(revoked), failing('preview_link_inactive', /Create another/));
});
