// `berth run` against a fake API that runs commands locally: no sandbox remains. With a real VM:
// e2e/commands/cli-streams.long.test.ts.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { exampleSandbox } from '@berth/contract/route/examples.ts';
import { ApiServer } from '../world/api-server.ts';
import { berth, startBerth, type Ended } from '../world/berth.ts';
import { LocalGuest } from '../world/local-guest.ts';
import { untilTrue } from '../../../os/test/until.ts';

const ID = 'sbx_made';
const DESTROY = `POST /v1/sandboxes/${ID}/destroy`;
let api: ApiServer;
let guest: LocalGuest;
let folder: string;
/** Requests in order. */
let asked: string[];
let made: unknown[];
/** Polls until the sandbox is awake. */
let looksLeft: number;
/** Failures of the next calls. */
let trouble: { create?: (() => Promise<void>)[]; destroy?: (() => Promise<void>)[]; get?: (() => Promise<void>)[] };

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-run-'));
  api = await ApiServer.start();
});
after(async () => {
  api.close();
  await rm(folder, { recursive: true });
});
beforeEach(() => {
  [asked, made, looksLeft, trouble] = [[], [], 0, {}];
  api.json = async ({ method = '', url = '', headers }, body, response) => {
    asked.push(`${method} ${url}`);
    const what = method === 'GET' ? 'get' : url.endsWith('/destroy') ? 'destroy' : 'create';
    const next = trouble[what]?.shift();
    if (next !== undefined) await next();
    if (next === HANG_UP) response.destroy();
    if (what === 'create') made.push({ body, key: headers['idempotency-key'] });
    if (what === 'get') looksLeft -= 1;
    return { sandbox: { ...exampleSandbox, id: ID, status: looksLeft >= 0 ? 'provisioning' : 'ready', clone: null } };
  };
  guest = new LocalGuest(folder, api);
});
afterEach(() => {
  api.refuse = null;
});

const HANG_UP = (): Promise<void> => Promise.resolve();
const env = (): Record<string, string | undefined> => ({
  ...api.environment,
  BERTH_ORG_ID: 'org_one',
  BERTH_PROJECT_ID: 'prj_one',
});
const run = (args: string[], stdin?: string): Promise<Ended> =>
  berth(['run', ...args], { env: env(), ...(stdin === undefined ? {} : { stdin }) });

const destroyed = (): number => asked.filter((call) => call === DESTROY).length;

test('run creates a sandbox by its options, runs the command as exec -i, and destroys it', async () => {
  const ended = await run([
    '--size',
    'large',
    '--end-user',
    'ada',
    '--ttl-seconds',
    '30m',
    '--metadata',
    'a=b',
    '--',
    'printf "out"; echo err >&2; exit 7',
  ]);
  assert.deepEqual(ended, { code: 7, stdout: 'out', stderr: 'err\n' });
  assert.equal(asked[0], 'POST /v1/orgs/org_one/sandboxes');
  assert.equal(asked.at(-1), DESTROY);
  const { key, body } = made[0] as { key: string; body: object };
  assert.match(key, /^[0-9a-f-]{36}$/);
  assert.deepEqual(body, {
    agent: 'agent_one',
    projectId: 'prj_one',
    machineSize: 'large',
    endUserId: 'ada',
    metadata: { a: 'b' },
    mode: 'ephemeral',
    ttlSeconds: 1_800,
  });
  assert.deepEqual(await run(['-i', '--', 'cat'], 'in'), { code: 0, stdout: 'in', stderr: '' });
  assert.deepEqual(
    await run(['cat', '-u', '-'], 'in').then(({ stdout }) => stdout),
    '',
    'without -i there is nothing to read',
  );
});

test('--keep keeps the sandbox and prints its id on stderr', async () => {
  const { code, stdout, stderr } = await run(['--keep', '--', 'echo done']);
  assert.deepEqual([code, stdout, stderr], [0, 'done\n', `berth: kept ${ID}; delete it with berth sandbox rm ${ID}\n`]);
  assert.equal(destroyed(), 0);
});

test('Ctrl-C reaches the command, and the sandbox is destroyed', async () => {
  const { child, seen, ended } = startBerth(['run', '--', 'echo begun; exec sleep 1000'], { env: env() });
  await untilTrue('it runs', () => seen.stdout === 'begun\n');
  child.kill('SIGINT');
  assert.deepEqual(await ended, { code: 130, stdout: 'begun\n', stderr: '' });
  assert.equal(destroyed(), 1);
});

test('Ctrl-C during creation destroys the sandbox, even before its id is known', async () => {
  looksLeft = Number.POSITIVE_INFINITY;
  const waiting = startBerth(['run', '--', 'true'], { env: env() });
  await untilTrue('it is waited for', () => asked.some((call) => call.startsWith('GET')));
  waiting.child.kill('SIGINT');
  assert.deepEqual(await waiting.ended, { code: 130, stdout: '', stderr: 'berth: stopped by SIGINT\n' });
  assert.equal(destroyed(), 1);

  const answering = Promise.withResolvers<void>();
  trouble.create = [() => answering.promise];
  const unknown = startBerth(['run', '--', 'true'], { env: env() });
  await untilTrue('it is asked for', () => asked.filter((call) => call === asked[0]).length === 2);
  unknown.child.kill('SIGTERM');
  // The signal arrives before the response.
  await untilTrue('it was told', () => unknown.child.killed);
  answering.resolve();
  assert.deepEqual(await unknown.ended, { code: 143, stdout: '', stderr: 'berth: stopped by SIGTERM\n' });
  assert.equal(destroyed(), 2);
});

test('a lost response of a create is retried with the same key; a destroy too', async () => {
  trouble = { create: [HANG_UP], destroy: [HANG_UP] };
  assert.deepEqual(await run(['--', 'echo done']), { code: 0, stdout: 'done\n', stderr: '' });
  assert.deepEqual(
    made.map((call) => (call as { key: string }).key),
    Array(2).fill((made[0] as { key: string }).key),
  );
  assert.equal(destroyed(), 2);
});

test('a second Ctrl-C skips waiting for the destroy, and names the possibly remaining sandbox', async () => {
  trouble.destroy = [() => new Promise(() => undefined)];
  const { child, seen, ended } = startBerth(['run', '--', 'echo begun; exec sleep 1000'], { env: env() });
  await untilTrue('it runs', () => seen.stdout === 'begun\n');
  child.kill('SIGINT');
  await untilTrue('it is being destroyed', () => destroyed() === 1);
  child.kill('SIGINT');
  const { code, stderr } = await ended;
  assert.deepEqual(
    [code, stderr],
    [130, `berth: the sandbox ${ID} may still exist: interrupted\n  delete it with berth sandbox rm ${ID}\n`],
  );
});

test('a second Ctrl-C ends a command that ignored the first, and destroys its sandbox', async () => {
  const { child, seen, ended } = startBerth(
    ['run', '--', 'trap "echo no" INT; echo begun; while :; do sleep 0.1; done'],
    { env: env() },
  );
  await untilTrue('it runs', () => seen.stdout === 'begun\n');
  child.kill('SIGINT');
  await untilTrue('it refuses', () => seen.stdout === 'begun\nno\n');
  child.kill('SIGINT');
  assert.deepEqual(await ended, { code: 130, stdout: 'begun\nno\n', stderr: 'berth: stopped by SIGINT\n' });
  assert.equal(destroyed(), 1);
});

test('a lost connection or a closed output pipe destroys the sandbox too', async () => {
  const { answer } = api;
  api.answer = (socket) => socket.terminate();
  const { code, stderr } = await run(['--', 'true']);
  assert.deepEqual(
    [code, stderr],
    [125, 'berth: the connection to the command was closed: the connection to the server was lost\n'],
  );
  assert.equal(destroyed(), 1);
  api.answer = answer;
  const { child, ended } = startBerth(['run', '--', 'yes'], { env: env() });
  child.stdout.once('data', () => child.stdout.destroy());
  assert.deepEqual(await ended.then(({ code, stderr }) => [code, stderr]), [141, '']);
  assert.equal(destroyed(), 2);
  await untilTrue('nothing runs', () => guest.running.size === 0);
});

test('-w, -e and -u are those of the command, and not sent with the create', async () => {
  const { code } = await run(['-w', 'my app', '-e', 'A=1=2', '-u', 'root', '--', 'true']);
  assert.equal(code, 0);
  assert.deepEqual(guest.asked, [{ command: 'true', tty: 'false', cwd: 'my app', user: 'root', 'env[A]': '1=2' }]);
  const sent = Object.keys((made as { body: object }[])[0]?.body ?? {});
  assert.deepEqual(
    sent.filter((field) => ['cwd', 'env', 'user'].includes(field)),
    [],
  );
});

test('a failed creation is reported with exit code 125, a usage error with 2', async () => {
  api.json = ({ method, url }) => {
    asked.push(`${method} ${url}`);
    return {
      sandbox: {
        ...exampleSandbox,
        id: ID,
        status: 'failed',
        statusReason: { code: 'host_lost', message: 'its host is gone' },
      },
    };
  };
  const failed = await run(['--', 'true']);
  assert.equal(failed.code, 125);
  assert.match(failed.stderr, /its host is gone/);
  assert.equal(asked.at(-1), DESTROY);
  api.refuse = {
    status: 402,
    body: JSON.stringify({ error: { code: 'no_active_plan', message: 'the org has no plan' } }),
  };
  assert.deepEqual(await run(['--', 'true']), {
    code: 125,
    stdout: '',
    stderr: 'berth: the org has no plan (no_active_plan)\n  subscribe to a plan, or ask an owner of the org\n',
  });
  for (const args of [
    [],
    ['--size', 'huge', '--', 'true'],
    ['-t', '--', 'true'],
    ['--mode', 'ephemeral', '--', 'true'],
  ])
    assert.equal((await run(args)).code, 2, args.join(' '));
});
