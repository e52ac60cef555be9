// `berth sandbox sleep`, `wake` and `rm` of sandboxes that a filter selects.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Sandbox } from '@berth/sdk';
import type { Ended } from '../world/berth.ts';
import { TestService } from '../world/test-service.ts';

let service: TestService;
before(async () => (service = await TestService.start()));
after(() => service.close());

async function make(team: string, fields: object = {}): Promise<Sandbox> {
  const spec = { agent: 'agent_one' as const, name: `of ${team}`, metadata: { team }, ...fields };
  return await service.server.client().sandboxes.create(spec);
}

async function run(...words: string[]): Promise<Ended> {
  return await service.run(['sandbox', ...words]);
}

async function statusOf({ id }: Sandbox): Promise<string> {
  return (await service.server.client().sandboxes.get(id)).status;
}

test('an empty filter, and names beside a filter, are refused before anything is done', async () => {
  const kept = await make('kept');
  for (const [words, message] of [
    [['rm'], /no sandboxes given\n {2}name them, or use --status, --metadata, --end-user, --project or --all\n/],
    [['rm', '--yes'], /no sandboxes given/],
    [['rm', kept.id, '--all', '--yes'], /names cannot be combined with --all or a filter/],
    [['sleep', kept.id, '--end-user', 'u'], /names cannot be combined with --all or a filter/],
    [['rm', kept.id, '--yes'], /--yes requires --all or a filter/],
    [['rm', '--all', '--status', 'failed'], /--all cannot be combined with --status/],
    [['rm', ''], /invalid sandbox ''/],
  ] as const) {
    const { code, stdout, stderr } = await run(...words);
    assert.deepEqual([code, stdout], [2, ''], words.join(' '));
    assert.match(stderr, message);
  }
  assert.equal(await statusOf(kept), 'ready');
  await kept.destroy();
});

test('without a terminal a filter shows what it selects and requires --yes', async () => {
  const red = [await make('red'), await make('red', { mode: 'ephemeral', ttlSeconds: 600 })];
  const blue = await make('blue');
  const { code, stdout, stderr } = await run('sleep', '--metadata', 'team=red');
  assert.deepEqual([code, stdout], [2, '']);
  assert.match(stderr, /^ID +NAME +STATUS[^]*confirmation required[^]*use --yes to skip the confirmation\n$/);
  assert.ok(red.every(({ id }) => stderr.includes(id)) && !stderr.includes(blue.id), stderr);
  assert.deepEqual(await Promise.all([...red, blue].map(statusOf)), ['ready', 'ready', 'ready']);
  for (const sandbox of [...red, blue]) await sandbox.destroy();
});

test('sleep, wake and rm act on what the filter selects, and repeating them does nothing', async () => {
  const [one, two, other] = [await make('a', { endUserId: 'u' }), await make('a', { endUserId: 'u' }), await make('b')];
  const lines = (status: string): string => `${two.id} ${status}\n${one.id} ${status}\n`;
  const filter = ['--metadata', 'team=a', '--end-user', 'u', '--yes'];
  const slept = await run('sleep', ...filter);
  assert.deepEqual([slept.code, slept.stdout, slept.stderr], [0, lines('stopped'), 'berth: put to sleep: 2\n']);
  const again = await run('sleep', ...filter);
  assert.deepEqual([again.code, again.stdout, again.stderr], [0, '', 'no matching sandboxes\n']);
  const woken = await run('wake', '--status', 'stopped,failed', '--yes', '--json');
  assert.deepEqual([woken.code, woken.stderr], [0, 'berth: woken: 2\n']);
  assert.equal(woken.stdout.match(/"status": "ready"/g)?.length, 2);
  const removed = await run('rm', ...filter);
  assert.deepEqual([removed.code, removed.stdout, removed.stderr], [0, lines('deleted'), 'berth: deleted: 2\n']);
  assert.equal(await statusOf(other), 'ready');
  const all = await run('rm', '--all', '--yes');
  assert.deepEqual([all.code, all.stdout], [0, `${other.id} deleted\n`]);
  assert.equal((await run('rm', '--all', '--yes')).stderr, 'no matching sandboxes\n');
});

test('--project alone selects a project; beside a name it narrows the name', async () => {
  const { id: projectId } = await service.server.client({ apiKey: service.server.sessionToken }).projects.create();
  const [here, there] = [await make('p'), await make('p', { projectId })];
  assert.equal((await run('sleep', 'of p', '--project', projectId)).stdout, `${there.id} stopped\n`);
  assert.equal((await run('rm', '--project', projectId, '--yes')).stdout, `${there.id} deleted\n`);
  assert.equal(await statusOf(here), 'ready');
  await here.destroy();
});

test('each failure is reported, the rest is done, and the exit code is 1', async (t) => {
  const made = [await make('x'), await make('x'), await make('x')];
  service.server.failNext({ method: 'POST', path: `${made[1]?.id}/destroy`, with: 'host_unavailable' });
  const { code, stdout, stderr } = await run('rm', '--metadata', 'team=x', '--yes');
  assert.deepEqual([code, stdout], [1, `${made[2]?.id} deleted\n${made[0]?.id} deleted\n`]);
  assert.match(stderr, new RegExp(`^berth: ${made[1]?.id}: .* \\(host_unavailable\\)$`, 'm'));
  assert.match(stderr, /^berth: deleted: 2, failed: 1$/m);
  // Another caller deletes one of two between the list and the action.
  const raced = await make('x');
  t.after(() => (service.before = () => undefined));
  service.before = async (path) => {
    if (path.includes(`/v1/sandboxes/${raced.id}`)) await raced.destroy();
  };
  const second = await run('sleep', '--metadata', 'team=x', '--yes');
  assert.deepEqual([second.code, second.stdout], [0, `${raced.id} deleted\n${made[1]?.id} stopped\n`], second.stderr);
  assert.match(second.stderr, /^berth: put to sleep: 1, no longer selected: 1$/m);
});

test('in a terminal the selection is shown and confirmed', async () => {
  const doomed = await make('t', { mode: 'ephemeral', ttlSeconds: 600 });
  const screen = service.terminal(['sandbox', 'sleep', '--metadata', 'team=t']);
  await screen.shows(/ID +NAME[^]*of t[^]*Put these to sleep: 1, and destroy the ephemeral ones \(1\)\? \[y\/N\]/);
  screen.type('\r');
  assert.equal(await screen.ended(), 1);
  assert.equal(await statusOf(doomed), 'ready');
  const agreed = service.terminal(['sandbox', 'rm', '--metadata', 'team=t']);
  await agreed.shows('Delete these permanently: 1? [y/N]');
  agreed.type('y\r');
  await agreed.shows(`${doomed.id} deleted`);
  assert.equal(await agreed.ended(), 0);
});
