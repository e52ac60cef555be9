// Commands in a real guest, as the spec defines them: exit codes, bounds, timeouts, background
// processes, callers that disconnect.
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { awakeSandbox, call, destroySandbox, errorOf, exec } from '../world/client.ts';
import { startInstance, type Instance } from '../world/instance.ts';

let berth: Instance;
let sandbox: Sandbox;

before(async () => {
  berth = await startInstance('exec');
  sandbox = await awakeSandbox(berth);
});

after(async () => {
  if (sandbox !== undefined) await destroySandbox(berth, sandbox.id);
  await berth?.end();
});

test('a non-zero exit code is a successful request, and signal n is 128 + n', async () => {
  assert.deepEqual(await exec(berth, sandbox.id, 'echo out; echo err >&2; exit 7'), {
    exitCode: 7,
    stdout: 'out\n',
    stderr: 'err\n',
    truncated: false,
    timedOut: false,
  });
  assert.equal((await exec(berth, sandbox.id, 'kill -TERM $$')).exitCode, 143);
  assert.equal((await exec(berth, sandbox.id, 'no-such-command')).exitCode, 127);
});

test('a timeout kills the whole process group and keeps partial output', async () => {
  const result = await exec(berth, sandbox.id, 'echo before; (trap "" TERM; sleep 4711) & sleep 4711', 5);
  assert.deepEqual(result, { exitCode: 124, stdout: 'before\n', stderr: '', truncated: false, timedOut: true });
  assert.equal((await exec(berth, sandbox.id, 'pgrep -xf "sleep 4711"')).stdout, '');
});

test('the tail of long output is kept, cut at a character', async () => {
  const result = await exec(berth, sandbox.id, 'python3 -c "print(\'ä\' * 524288)"; echo end');
  assert.equal(result.truncated, true);
  assert.ok(Buffer.byteLength(result.stdout) <= 65_536 && Buffer.byteLength(result.stdout) > 65_500);
  assert.match(result.stdout, /^ä+\nend\n$/);
});

test('a background child neither blocks the request nor dies with it', async () => {
  const result = await exec(
    berth,
    sandbox.id,
    'sh -c "while :; do echo tick; sleep 0.2; done" & echo $! > /tmp/child; echo started',
  );
  assert.match(result.stdout, /started/);
  assert.equal(result.timedOut, false);
  assert.equal(
    (await exec(berth, sandbox.id, 'sleep 1; kill -0 $(cat /tmp/child) && kill $(cat /tmp/child)')).exitCode,
    0,
  );
});

test('a caller that disconnects ends its process group', async () => {
  const abort = new AbortController();
  const call1 = call(
    berth,
    'POST',
    `/v1/sandboxes/${sandbox.id}/exec`,
    { command: 'sleep 4712', timeoutSeconds: 600 },
    { signal: abort.signal },
  );
  const left = assert.rejects(call1, { name: 'AbortError' });
  const running = async (): Promise<boolean> =>
    (await exec(berth, sandbox.id, 'pgrep -xf "sleep 4712"')).exitCode === 0;
  await until(running, 'the command runs');
  abort.abort();
  await left;
  await until(async () => !(await running()), 'the command has ended');
});

test('directory, variables, user and input of a command', async () => {
  const run = async (body: object): Promise<string> => {
    const answer = await call(berth, 'POST', `/v1/sandboxes/${sandbox.id}/exec`, body);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return (answer.body as { stdout: string }).stdout;
  };
  const inTmp = { cwd: '/tmp', env: { NAME: 'a b' }, stdin: 'line\n' };
  assert.equal(await run({ command: 'pwd; echo "$NAME"; cat', ...inTmp }), '/tmp\na b\nline\n');
  assert.equal(await run({ command: 'id -un; echo ~; pwd', user: 'root' }), 'root\n/root\n/code\n');
  for (const [option, field] of [
    [{ cwd: 'missing' }, 'body.cwd'],
    [{ user: 'missing' }, 'body.user'],
  ] as const) {
    const refused = await call(berth, 'POST', `/v1/sandboxes/${sandbox.id}/exec`, { command: 'true', ...option });
    assert.equal(errorOf(refused, 400).message.startsWith(`${field} `), true);
  }
});

test('fifty concurrent commands all return', async () => {
  const results = await Promise.all(Array.from({ length: 50 }, (_, index) => exec(berth, sandbox.id, `echo ${index}`)));
  assert.deepEqual(
    results.map((result) => result.stdout),
    Array.from({ length: 50 }, (_, index) => `${index}\n`),
  );
});

test('a silent command sends headers and blanks long before its JSON', async () => {
  const url = new URL(`/v1/sandboxes/${sandbox.id}/exec`, berth.url);
  const pieces = await new Promise<string[]>((resolve, reject) => {
    const chunks: string[] = [];
    const sent = request(
      url,
      { method: 'POST', headers: { authorization: `Bearer ${berth.token}`, 'content-type': 'application/json' } },
      (response) => {
        assert.equal(response.statusCode, 200);
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => chunks.push(chunk));
        response.on('end', () => resolve(chunks));
        response.on('error', reject);
      },
    );
    sent.on('error', reject);
    sent.end(JSON.stringify({ command: 'sleep 17; echo done', timeoutSeconds: 60 }));
  });
  assert.ok(pieces.length > 1, 'blanks and result came in one piece');
  assert.match(pieces[0] ?? '', /^ +$/);
  assert.equal((JSON.parse(pieces.join('')) as { stdout: string }).stdout, 'done\n');
});

test('out-of-range values are refused by name', async () => {
  const path = `/v1/sandboxes/${sandbox.id}/exec`;
  for (const timeoutSeconds of [0, 601, 1.5, '10', -1]) {
    assert.match(
      errorOf(await call(berth, 'POST', path, { command: 'true', timeoutSeconds }), 400).message,
      /timeoutSeconds/,
    );
  }

  assert.match(errorOf(await call(berth, 'POST', path, {}), 400).message, /command/);
  assert.match(errorOf(await call(berth, 'POST', path, { command: 'true', directory: '/' }), 400).message, /directory/);
});

async function until(condition: () => Promise<boolean>, what: string): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`not within 60 s: ${what}`);
    await delay(100);
  }
}
