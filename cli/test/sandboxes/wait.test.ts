// `berth sandbox wait` on a service with scripted statuses, and `berth sandbox ls --watch`.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { until } from '../../../os/test/until.ts';
import { ApiServer, refusal } from '../world/api-server.ts';
import { berth, startBerth, type Ended } from '../world/berth.ts';
import { TestService } from '../world/test-service.ts';

const ID = `sbx_${'a'.repeat(24)}`;

interface Script {
  status: string;
  clone?: { status: string; reason: { code: string; message: string } | null } | null;
  statusReason?: { code: string; message: string } | null;
}

let api: ApiServer;
before(async () => (api = await ApiServer.start()));
after(() => api.close());

/** Each response is the next record; the last one stays. */
async function wait(script: readonly Script[], ...options: string[]): Promise<Ended> {
  const left = [...script];
  api.json = ({ url }) => {
    assert.equal(url, `/v1/sandboxes/${ID}`);
    const record = left.length > 1 ? left.shift() : left[0];
    return { sandbox: { id: ID, clone: null, statusReason: null, ...record } };
  };
  return await berth(['sandbox', 'wait', ID, ...options], { env: api.environment });
}

const CLONING = { status: 'cloning', reason: null };
const CLONED = { status: 'cloned', reason: null };
const REASON = { code: 'create_failed', message: 'no\u001B[1m disk' };

test('wait resolves when the status is reached, also after others', async () => {
  for (const [wanted, script, status] of [
    ['ready', [{ status: 'ready' }], 'ready'],
    ['running', [{ status: 'ready' }], 'ready'],
    [
      'ready',
      [{ status: 'provisioning' }, { status: 'running', clone: CLONING }, { status: 'ready', clone: CLONED }],
      'ready',
    ],
    [
      'clone',
      [
        { status: 'provisioning', clone: CLONING },
        { status: 'running', clone: CLONED },
      ],
      'running',
    ],
    ['stopped', [{ status: 'ready' }, { status: 'sleeping' }, { status: 'stopped' }], 'stopped'],
    ['ready', [{ status: 'stopped' }, { status: 'waking' }, { status: 'ready' }], 'ready'],
    ['deleted', [{ status: 'ready' }, { status: 'destroying' }, { status: 'deleted' }], 'deleted'],
    ['ready', [{ status: 'of_a_later_release' }, { status: 'ready' }], 'ready'],
  ] satisfies [string, Script[], string][]) {
    const { code, stdout, stderr } = await wait(script, '--for', wanted);
    assert.deepEqual([code, stdout, stderr], [0, `${ID} ${status}\n`, ''], wanted);
  }
  const json = await wait([{ status: 'ready' }], '--json');
  assert.equal((JSON.parse(json.stdout) as { sandbox: Script }).sandbox.status, 'ready');
});

test('wait --status is refused, with the option to use', async () => {
  const { code, stderr } = await wait([], '--status', 'ready');
  assert.equal(code, 2);
  assert.match(stderr, /option '--status <status>' argument 'ready' is invalid\. Use --for ready\./);
});

test('wait exits with 8, status and reason when the sandbox settled elsewhere', async () => {
  for (const [wanted, script, message] of [
    [
      'ready',
      [{ status: 'provisioning' }, { status: 'failed', statusReason: REASON }],
      String.raw`failed: no\u001b[1m disk (create_failed), not ready`,
    ],
    ['stopped', [{ status: 'sleeping' }, { status: 'ready' }], 'ready, not stopped'],
    ['ready', [{ status: 'waking' }, { status: 'stopped' }], 'stopped, not ready'],
    ['running', [{ status: 'deleted' }], 'deleted, not running'],
    ['clone', [{ status: 'ready' }], 'ready, and its repository is not cloned'],
    [
      'clone',
      [{ status: 'running', clone: { status: 'failed', reason: REASON } }],
      String.raw`running: no\u001b[1m disk (create_failed), and its repository is not cloned`,
    ],
  ] satisfies [string, Script[], string][]) {
    const { code, stdout, stderr } = await wait(script, '--for', wanted);
    assert.deepEqual([code, stdout], [8, ''], stderr);
    assert.ok(stderr.endsWith(`berth: ${ID} is ${message}\n  berth logs ${ID} shows why\n`), stderr);
  }
});

test('wait exits with 124 and the status after its timeout, and refuses wrong input', async () => {
  const late = await wait([{ status: 'stopped' }], '--timeout', '1');
  assert.deepEqual([late.code, late.stdout], [124, '']);
  assert.match(late.stderr, /^berth: sbx_a{24} is stopped after 1 s, not ready\n {2}wait longer with --timeout\n$/m);
  for (const [options, message] of [
    [['--for', 'awake'], /Allowed choices are ready, running, stopped, deleted, clone/],
    [['--timeout', '0'], /from 1 s to 86400 s/],
  ] as const) {
    const { code, stderr } = await wait([{ status: 'ready' }], ...options);
    assert.deepEqual([code, message.test(stderr)], [2, true], stderr);
  }
  api.refuse = refusal(404, 'sandbox_not_found', 'there is no such sandbox');
  const none = await berth(['sandbox', 'wait', ID], { env: api.environment });
  api.refuse = null;
  assert.deepEqual([none.code, /\(sandbox_not_found\)/.test(none.stderr)], [1, true]);
});

test('ls --watch --json prints a line per change, and Ctrl-C ends it', async (t) => {
  const service = await TestService.start({ exec: () => 'done\n' });
  t.after(() => service.close());
  const one = await service.sandbox();
  const { child, seen, ended } = startBerth(['sandbox', 'ls', '--watch', '--interval', '1', '--json'], {
    env: service.environment,
  });
  const lines = async (count: number): Promise<string[]> =>
    await until(`${count} lines`, () => {
      const found = seen.stdout.trimEnd().split('\n');
      return Promise.resolve(seen.stdout !== '' && found.length >= count ? found : null);
    });
  await lines(1);
  // A use is no change.
  await one.exec('true');
  const other = await service.sandbox();
  await lines(2);
  await other.sleep();
  await lines(3);
  await other.destroy();
  const changes = (await lines(4)).map(
    (line) => JSON.parse(line) as { change: string; sandbox: Script & { id: string } },
  );
  child.kill('SIGINT');
  assert.deepEqual(
    changes.map(({ change, sandbox: { id, status } }) => [change, id, status]),
    [
      ['added', one.id, 'ready'],
      ['added', other.id, 'ready'],
      ['changed', other.id, 'stopped'],
      ['removed', other.id, 'stopped'],
    ],
  );
  const { code, stderr } = await ended;
  assert.deepEqual([code, stderr], [130, '']);
});

test('ls --watch redraws the table in a terminal, survives an outage and leaves the last list', async (t) => {
  const service = await TestService.start();
  t.after(() => service.close());
  const { id } = await service.sandbox();
  const screen = service.terminal(['sandbox', 'ls', '--watch', '--interval', '1']);
  await screen.shows('every second; Ctrl-C stops');
  await screen.shows(new RegExp(`${id}[^\\n]*ready`));
  const { port } = service;
  await service.pause();
  await service.listen(port);
  const other = await service.sandbox();
  await screen.shows(other.id);
  screen.type('\x03');
  assert.equal(await screen.ended(), 130);
  const left = screen.text.slice(screen.text.lastIndexOf('\u001B[?1049l'));
  assert.match(left, new RegExp(`ID +NAME[^]*${other.id}[^]*${id}`));
  assert.doesNotMatch(left, /berth:/);
  const quiet = await service.run(['sandbox', 'ls', '--watch', '-q']);
  assert.deepEqual([quiet.code, /--watch cannot be combined with --quiet/.test(quiet.stderr)], [2, true]);
});
