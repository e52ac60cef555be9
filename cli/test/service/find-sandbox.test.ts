// Commands that take a sandbox by id, name or the start of its id.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Sandbox } from '@berth/sdk';
import { endpoints } from '../../src/files/endpoint.ts';
import { ApiServer } from '../world/api-server.ts';
import { berth, type Ended } from '../world/berth.ts';
import { TestService } from '../world/test-service.ts';

let service: TestService;
let web: Sandbox;
/** Requested paths. */
let paths: string[];
before(async () => {
  service = await TestService.start({ exec: (command) => `ran ${command}\n` });
  service.before = (path) => void paths.push(path);
  paths = [];
  web = await make('web');
});
after(() => service.close());

async function make(name: string, fields: { projectId?: string } = {}): Promise<Sandbox> {
  return await service.server.client().sandboxes.create({ agent: 'agent_one', name, ...fields });
}

async function run(...words: string[]): Promise<Ended> {
  paths = [];
  return await service.run(words);
}

test('an id is used without a request; a name and the start of an id find the sandbox', async () => {
  for (const [typed, requests] of [
    [web.id, 1],
    ['web', 3],
    [web.id.slice(0, 8), 3],
  ] as const) {
    const { code, stdout, stderr } = await run('sandbox', 'get', typed, '--json');
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal((JSON.parse(stdout) as { sandbox: { id: string } }).sandbox.id, web.id);
    assert.equal(paths.length, requests, paths.join(' '));
  }
});

test('a name that other names contain is found, also with special characters', async () => {
  const odd = await make("web ☂ 'b/c'");
  await make('a web b');
  for (const [typed, id] of [
    ['web', web.id],
    ["web ☂ 'b/c'", odd.id],
  ] as const)
    assert.equal((await run('exec', typed, '--', 'id')).stdout, 'ran id\n', id);
  const { stdout } = await run('sandbox', 'get', "web ☂ 'b/c'", '--json');
  assert.ok(stdout.includes(odd.id));
  const caseless = await run('sandbox', 'get', 'WEB');
  assert.deepEqual([caseless.code, caseless.stdout], [1, '']);
});

test('an ambiguous name is refused with a bounded list of candidates, before anything is done', async () => {
  const twins = [];
  for (let index = 0; index < 12; index += 1) twins.push(await make('twin'));
  const { code, stdout, stderr } = await run('sandbox', 'rm', 'web', 'twin');
  assert.deepEqual([code, stdout], [2, '']);
  assert.match(
    stderr,
    /^berth: 12 sandboxes have the name 'twin': sbx_\w+ \(twin, ready\), .* and 2 more\n {2}use an id\n$/,
  );
  assert.equal(stderr.match(/sbx_/g)?.length, 10);
  const { status } = await service.server.client().sandboxes.get(web.id);
  assert.equal(status, 'ready', 'the sandbox before it is kept');
  const removed = await run('sandbox', 'rm', ...twins.map(({ id }) => id));
  assert.equal(removed.code, 0);
});

test('--project narrows a name to a project', async () => {
  const { id: projectId } = await service.server.client({ apiKey: service.server.sessionToken }).projects.create();
  const other = await make('web', { projectId });
  const [both, one] = [
    await run('sandbox', 'get', 'web'),
    await run('sandbox', 'get', 'web', '--project', projectId, '--json'),
  ];
  assert.equal(both.code, 2, both.stderr);
  assert.match(both.stderr, /2 sandboxes have the name 'web'/);
  assert.ok(one.stdout.includes(other.id), one.stderr);
  await other.destroy();
  const none = await run('sandbox', 'get', 'web', '--project', projectId);
  assert.equal(none.code, 1);
  assert.match(none.stderr, new RegExp(`no sandbox of the project ${projectId} has the name 'web'`));
});

test('a destructive command takes no prefix shorter than 8 characters, but any name', async () => {
  const doomed = await make('sbx_x');
  const short = doomed.id.slice(0, 11);
  for (const words of [
    ['sandbox', 'rm'],
    ['sandbox', 'sleep'],
    ['files', 'rm', short, 'a'],
    ['kill', short, 'p'],
    ['preview', 'rm', short, 'prv_a'],
  ]) {
    const { code, stdout, stderr } = await run(...(words.length === 2 ? [...words, short] : words));
    assert.deepEqual([code, stdout], [2, ''], words.join(' '));
    assert.match(stderr, /'sbx_\w{7}' is too short for this command: the start of an id has at least sbx_ and 8 more/);
    assert.ok(stderr.includes(`${doomed.id} (sbx_x, ready)`));
  }
  assert.equal((await run('sandbox', 'sleep', doomed.id.slice(0, 12))).stdout, `${doomed.id} stopped\n`);
  assert.equal((await run('sandbox', 'wake', short)).stdout, `${doomed.id} ready\n`);
  const removed = await run('sandbox', 'rm', 'sbx_x');
  assert.equal(removed.stdout, `${doomed.id} deleted\n`, removed.stderr);
  const twice = await run('sandbox', 'rm', 'sbx_x', doomed.id);
  assert.deepEqual([twice.code, twice.stdout], [1, `${doomed.id} deleted\n`]);
});

test('a prefix of fewer than 4 characters, an ambiguous one and an unknown name are refused', async () => {
  await make('one more');
  for (const [typed, exit, message] of [
    [web.id.slice(0, 7), 2, /'sbx_\w{3}' is too short: the start of an id has at least sbx_ and 4 more/],
    ['sbx_', 2, /'sbx_' is too short: .*\n {2}use the name or the id: .*\(web, ready\)/],
    ['sbx_zzzz', 1, /no sandbox of the org org_\w+ has the name 'sbx_zzzz' or an id that begins with it\n/],
    [web.id.slice(4), 1, /has the name '\w{24}'\n {2}berth sandbox ls lists them; a deleted sandbox is found only by/],
    ['n\u001B[1mo', 1, /has the name 'n\\u001b\[1mo'\n/],
    ['', 2, /invalid sandbox ''/],
  ] as const) {
    const { code, stdout, stderr } = await run('sandbox', 'get', typed);
    assert.deepEqual([code, stdout], [exit, ''], stderr);
    assert.match(stderr, message);
  }
});

test('completion offers the names that are unique, and ids', async () => {
  const [one, two] = [await make('same'), await make('same')];
  const named = async (typed: string): Promise<string> => (await run('__complete', 'zsh', 'shell', typed)).stdout;
  assert.equal(await named('web'), `web\t${web.id} (ready)\n:\n`);
  assert.equal(await named('same'), ':\n');
  assert.ok((await named('sbx_')).includes(`${one.id}\tsame (ready)`));
  await web.spawn('serve', { name: 'job' });
  assert.match((await run('__complete', 'zsh', 'logs', 'web', 'prc')).stdout, /^prc_\w+\tjob \(exited 0\)\n:\n$/);
  for (const each of [one, two]) await each.destroy();
});

test('cp takes a name before the first slash; an id makes the other path local', () => {
  const id = `sbx_${'a'.repeat(24)}`;
  for (const [from, to, expected] of [
    ['web:/code/a', '.', { into: null, from: { sandbox: 'web', path: '/code/a' }, to: '.' }],
    ['./a:b', 'my box:.', { into: { sandbox: 'my box', path: '.' }, from: './a:b' }],
    ['a:b', `${id}:.`, { into: { sandbox: id, path: '.' }, from: 'a:b' }],
  ] as const)
    assert.deepEqual(endpoints(from, to), expected);
  assert.throws(() => endpoints('web:a', 'it:b'), /cannot copy from sandbox to sandbox/);
  assert.throws(() => endpoints('./web:a', '/it:b'), /is a path in a sandbox/);
  assert.throws(() => endpoints('web:', '.'), /missing path after web: \(web:\. is \/code\)/);
});

test('an id of the service that could be an option of ssh is refused', async (t) => {
  const api = await ApiServer.start();
  t.after(() => api.close());
  const evil = { id: '-oProxyCommand=id', name: 'web', status: 'ready' };
  api.json = ({ url }) =>
    url === '/v1/me/orgs' ? { orgs: [{ id: 'org_a' }] } : { sandboxes: [evil], nextCursor: null, hasMore: false };
  const { code, stderr } = await berth(['ssh', 'web'], { env: api.environment });
  assert.equal(code, 255);
  assert.match(stderr, /the service returned an invalid sandbox id: '-oProxyCommand=id'/);
});
