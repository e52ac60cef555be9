// `berth sandbox ls`, `get`, `sleep`, `wake`, `resize`, `renew`, `rm` and `metrics` against a real
// service, in pipes and in terminals.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { promisify } from 'node:util';
import stringWidth from 'string-width';
import { until } from '../../../os/test/until.ts';
import { idleMetrics } from '../../../api/test/world/host-stand-in.ts';
import { MAIN, cleanEnvironment, startBerth } from '../world/berth.ts';
import { masked, Service } from '../world/service.ts';

const EVIL = '\u001B[2Jevil\u202Egpj\nnext 日本語 👨‍👩‍👧';

/** Id of no sandbox. */
const NONE = `sbx_${'a'.repeat(24)}`;

const run = promisify(execFile);

let service: Service;
before(async () => {
  service = await Service.start();
  service.api.front.metrics = () => idleMetrics();
  await service.api.db
    .updateTable('project')
    .set({ use_case: 'external' })
    .where('id', '=', service.api.projectId)
    .execute();
});
after(() => service.close());

async function make(fields: Record<string, unknown> = {}): Promise<string> {
  const { orgId, projectId } = service.api;
  const body = { agent: 'agent_one', projectId, ...fields };
  const { body: answer, status } = await service.api.call('POST', `/v1/orgs/${orgId}/sandboxes`, { body });
  assert.equal(status, 201, JSON.stringify(answer));
  const { id } = (answer as { sandbox: Sandbox }).sandbox;
  await until('it is ready', async () => ((await get(id)).status === 'ready' ? true : null));
  return id;
}

const get = async (id: string): Promise<Sandbox> =>
  ((await service.body(`/v1/sandboxes/${id}`)) as { sandbox: Sandbox }).sandbox;

test('a list fits its terminal, keeps its columns for any name, and is complete in a pipe', async () => {
  const ids = [
    await make({ name: 'plain', endUserId: 'u1' }),
    await make({ name: EVIL, endUserId: 'u1', machineSize: 'xlarge' }),
  ];
  // Fixed times give the same text on slow runs.
  for (const [at, id] of ids.entries()) {
    const created = new Date(Date.now() - (80 - at) * 3_600_000);
    await service.api.db.updateTable('sandbox').set({ created_at: created }).where('id', '=', id).execute();
  }
  const words = ['sandbox', 'ls', '--end-user', 'u1'];
  const [wide, narrow, coloured, piped, json, quiet] = await Promise.all([
    service.show(words, { columns: 120, env: { NO_COLOR: '1' } }),
    service.show(words, { columns: 60, env: { NO_COLOR: '1' } }),
    service.show(words, { columns: 120 }),
    service.run(words),
    service.run([...words, '--json']),
    service.run([...words, '--quiet']),
  ]);
  const id = `sbx_${'x'.repeat(24)}`;
  assert.equal(
    masked(wide.text),
    [
      'ID                            NAME                                  ' +
        'STATUS  SIZE                       END USER  CREATED',
      String.raw`${id}  \u001b[2Jevil\u202egpj\nnext 日本語…  ready   8 vCPU, 16 GB, 80 GB disk  u1        3 d ago`,
      `${id}  plain                                 ready   1 vCPU, 1 GB, 10 GB disk   u1        3 d ago`,
      '',
    ].join('\n'),
  );
  for (const line of wide.text.split('\n')) assert.ok(stringWidth(line) <= 120, line);
  for (const line of narrow.text.split('\n')) assert.ok(stringWidth(line) <= 60, line);
  assert.match(
    masked(narrow.text),
    /^ID {28}NAME +STATUS {2}CREATED\nsbx_x{24} {2}\\u001b\[2J\S*… {2}ready {3}3 d ago\nsbx_x{24} {2}plain +ready {3}3 d ago\n$/,
  );
  // oxlint-disable-next-line no-control-regex -- colours are such
  assert.match(coloured.text, /\u001B\[32mready\u001B\[39m/);
  // oxlint-disable-next-line no-control-regex -- these may not be there
  assert.doesNotMatch(coloured.text.replaceAll(/\u001B\[\d+m/g, ''), /[\u0000-\u0009\u000B-\u001F\u202E]/);
  // oxlint-disable-next-line no-control-regex -- nor these
  assert.doesNotMatch(piped.stdout, /\u001B|…/);
  assert.deepEqual(JSON.parse(json.stdout), await service.body(`/v1/orgs/${service.api.orgId}/sandboxes?endUserId=u1`));
  assert.equal(quiet.stdout, `${ids.toReversed().join('\n')}\n`);
});

test('a list is filtered by project and status, cut by --limit, and says when it is empty', async () => {
  const { orgId, projectId } = service.api;
  const { body } = await service.api.call('POST', `/v1/orgs/${orgId}/projects`, { body: { name: 'other' } });
  const other = (body as { project: { id: string } }).project.id;
  const id = await make({ projectId: other });
  const [own, failed, limited, json, none] = await Promise.all([
    service.run(['sandbox', 'ls', '-q', '--project', other]),
    service.run(['sandbox', 'ls', '-q', '--project', other, '--status', 'failed']),
    service.run(['sandbox', 'ls', '-q', '--limit', '1']),
    service.run(['sandbox', 'ls', '--json', '--limit', '1']),
    service.run(['sandbox', 'ls', '--project', projectId, '--status', 'failed']),
  ]);
  assert.deepEqual([own.stdout, failed.stdout, limited.stdout], [`${id}\n`, '', `${id}\n`]);
  assert.deepEqual(JSON.parse(json.stdout), await service.body(`/v1/orgs/${orgId}/sandboxes?limit=1`));
  assert.deepEqual([none.code, none.stdout, none.stderr], [0, '', 'no matching sandboxes\n']);
  await service.run(['sandbox', 'rm', id]);
});

test('a list takes several statuses, a search, labels and an order; wrong values name the allowed ones', async () => {
  const first = await make({ name: 'Crew one', metadata: { crew: 'red', size: 2 } });
  const second = await make({ name: 'crew two', metadata: { crew: 'red' } });
  const ls = (...options: string[]) => service.run(['sandbox', 'ls', '-q', ...options]);
  const [found, labelled, other, oldest, unknown, order] = await Promise.all([
    ls('--search', 'CREW', '--status', 'ready,running', '--status', 'stopped'),
    ls('--metadata', 'crew=red', '--metadata', 'size=2'),
    ls('--search', 'crew', '--status', 'failed'),
    ls('--search', 'crew', '--sort', 'createdAt'),
    ls('--status', 'sleepy'),
    ls('--sort', 'name'),
  ]);
  assert.equal(found.stdout, `${second}\n${first}\n`);
  assert.equal(labelled.stdout, `${first}\n`);
  assert.equal(other.stdout, '');
  assert.equal(oldest.stdout, `${first}\n${second}\n`);
  assert.match(unknown.stderr, /--status must be one of "provisioning", .*, not "sleepy"/);
  assert.match(order.stderr, /Allowed choices are createdAt, -createdAt, lastActiveAt, -lastActiveAt/);
  assert.deepEqual([unknown.code, order.code], [2, 2]);
  await service.run(['sandbox', 'rm', first, second]);
});

test('a closed output pipe is no failure', async () => {
  const command = `'${process.execPath}' '${MAIN}' sandbox ls --json | head -1; echo "\${PIPESTATUS[0]}" >&2`;
  const { stdout, stderr } = await run('bash', ['-c', command], { env: cleanEnvironment(service.environment()) });
  assert.equal(stdout, '{\n');
  // 0 if all output fit into the pipe before it closed.
  assert.match(stderr, /^(?:0|141)\n$/);
});

test('get shows the main fields, and with --json the response', async () => {
  const id = await make({
    name: EVIL,
    metadata: { seats: 3, team: '\u001B[31mred' },
    mode: 'ephemeral',
    ttlSeconds: 7_200,
  });
  const [{ stdout, code }, json] = await Promise.all([
    service.run(['sandbox', 'get', id]),
    service.run(['sandbox', 'get', id, '--json']),
  ]);
  assert.equal(code, 0);
  const field = (name: string): string[] =>
    [...stdout.matchAll(new RegExp(`^${name} {2,}(.*)$`, 'gm'))].map(([, value = '']) => value);
  assert.deepEqual([field('id'), field('status'), field('size')], [[id], ['ready'], ['1 vCPU, 1 GB, 10 GB disk']]);
  assert.deepEqual(field('metadata').toSorted(), ['seats=3', String.raw`team=\u001b[31mred`]);
  assert.deepEqual(field('mode'), ['ephemeral, time to live 2 h']);
  assert.match(field('expires')[0] ?? '', /^\d{4}-\S+Z \(in [12] h\)$/);
  assert.deepEqual(field('name'), [String.raw`\u001b[2Jevil\u202egpj\nnext 日本語 👨‍👩‍👧`]);
  assert.deepEqual(JSON.parse(json.stdout), await service.body(`/v1/sandboxes/${id}`));
  const failed = await service.api.makeSandbox('failed');
  const shown = await service.run(['sandbox', 'get', failed.id]);
  assert.match(shown.stdout, /^reason +made so by a test \(create_failed\)$/m);
});

test('sleep, resize, wake, renew and rm work in sequence and report their outcome', async () => {
  const id = await make();
  const said = async (...words: string[]): Promise<[number | null, string]> => {
    const { code, stdout } = await service.run(['sandbox', ...words]);
    return [code, masked(stdout)];
  };
  const x = `sbx_${'x'.repeat(24)}`;
  assert.deepEqual(await said('sleep', id), [0, `${x} stopped\n`]);
  assert.deepEqual(await said('resize', id, '--vcpu', '2', '--disk-gb', '12'), [0, `${x} 2 vCPU, 1 GB, 12 GB disk\n`]);
  assert.deepEqual(await said('wake', id), [0, `${x} ready\n`]);
  const smaller = await service.run(['sandbox', 'resize', id, '--vcpu', '1']);
  assert.deepEqual([smaller.code, masked(smaller.stdout)], [0, `${x} 2 vCPU, 1 GB, 12 GB disk\n`]);
  assert.match(smaller.stderr, /^pending until the next wake: 1 vCPU, 1 GB, 12 GB disk$/m);
  const larger = await service.run(['sandbox', 'resize', id, '--memory-gb', '2', '--vcpu', '2', '--json']);
  assert.deepEqual(JSON.parse(larger.stdout), await service.body(`/v1/sandboxes/${id}`));
  const persistent = await service.run(['sandbox', 'renew', id]);
  assert.deepEqual([persistent.code, persistent.stdout], [1, '']);
  assert.match(persistent.stderr, /\(not_ephemeral\)/);
  assert.deepEqual(await said('rm', id), [0, `${x} deleted\n`]);
  assert.deepEqual(await said('rm', id), [0, `${x} deleted\n`], 'gone is what was wanted');
  const ephemeral = await make({ mode: 'ephemeral', ttlSeconds: 600 });
  assert.match((await said('renew', ephemeral))[1], /^sbx_x{24} expires 2026-01-02T03:04:05Z \(in \d+ min\)\n$/);
  assert.deepEqual(await said('sleep', ephemeral), [0, `${x} deleted\n`], 'an ephemeral one ends');
});

test('several sandboxes are all tried, each failure is named and sets the exit code', async () => {
  const [one, two] = [await make(), await make()];
  const { code, stdout, stderr } = await service.run(['sandbox', 'sleep', one, NONE, 'nope', two, NONE, one]);
  assert.deepEqual([code, stdout], [1, `${one} stopped\n${two} stopped\n`]);
  assert.match(stderr, /^berth: sbx_a{24}: there is no sandbox with this id \(sandbox_not_found\)$/m);
  assert.match(stderr, /^berth: nope: no sandbox of the org org_\w+ has the name 'nope'$/m);
  const removed = await service.run(['sandbox', 'rm', two, one, '--json']);
  assert.equal(removed.code, 0);
  const ids = [...removed.stdout.matchAll(/^ {4}"id": "(\w+)"/gm)].map(([, id]) => id);
  assert.deepEqual(ids, [two, one], 'one answer after the other, as they were named');
  const alone = await service.run(['sandbox', 'wake', NONE]);
  assert.equal(alone.code, 1);
  assert.match(alone.stderr, /^berth: there is no sandbox/m);
});

test('a sleep that falls back to awake is a failure with the reason', async () => {
  const id = await make();
  service.api.host.refuseSleeps.push({ code: 'sleep_failed', message: 'no space left' });
  const { code, stdout, stderr } = await service.run(['sandbox', 'sleep', id]);
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, new RegExp(`berth: sandbox ${id} is ready, not stopped or deleted: .+ \\(unexpected_status\\)`));
});

test('metrics have bars in a terminal, none in a pipe, and --json is the API response', async () => {
  const id = await make();
  const [terminal, piped, json, sample] = await Promise.all([
    service.show(['sandbox', 'metrics', id], { env: { NO_COLOR: '1' } }),
    service.run(['sandbox', 'metrics', id]),
    service.run(['sandbox', 'metrics', id, '--json']),
    service.run(['sandbox', 'metrics', id, '--sample', '--json']),
  ]);
  assert.match(terminal.text, /^memory +[█░]{20} {2}\d[\d.]* [MG]iB of \d[\d.]* [MG]iB \(\d[\d.]* %\)$/m);
  assert.match(piped.stdout, /^memory +\d[\d.]* [MG]iB of \d[\d.]* [MG]iB \(\d[\d.]* %\)$/m);
  assert.deepEqual(Object.keys(JSON.parse(json.stdout) as object), ['metrics']);
  assert.deepEqual(Object.keys(JSON.parse(sample.stdout) as object), ['sample']);
  const shown = await service.run(['sandbox', 'metrics', id, '--sample']);
  assert.match(shown.stdout, /^recommended +\d+ vCPU, \d+ GB, \d+ GB disk$/m);
});

test('--history prints a line per point with dashes for gaps, and --json is the API response', async () => {
  const id = await make();
  const args = ['sandbox', 'metrics', id, '--history', '10m'];
  service.api.front.metricsHistory = () => ({ stepSeconds: 10, points: [] });
  const empty = await service.run(args);
  assert.deepEqual([empty.code, empty.stdout], [0, '']);
  const figures = {
    residentMib: 300,
    unsharedMib: 1,
    diskUsedMib: 20,
    networkInPerSecond: 2_048,
    networkOutPerSecond: 0,
  };
  const none = { residentMib: null, unsharedMib: null, diskUsedMib: null, networkInPerSecond: null };
  const atUnixMs = Date.UTC(2026, 0, 1);
  service.api.front.metricsHistory = (_id, query) => {
    assert.equal(query.get('windowSeconds'), '600');
    const points = [
      { atUnixMs, cpuUsedPercent: 12.5, ...figures },
      { atUnixMs: atUnixMs + 10_000, cpuUsedPercent: null, networkOutPerSecond: null, ...none },
    ];
    return { stepSeconds: 10, points };
  };
  const { stdout } = await service.run(args);
  assert.match(stdout, /^2026-01-01T00:00:00Z +12 % +300 MiB +20 MiB +2\.0 KiB +0 B$/m);
  assert.match(stdout, /^2026-01-01T00:00:10Z(?: +-){5}$/m);
  assert.deepEqual(Object.keys(JSON.parse((await service.run([...args, '--json'])).stdout) as object), ['history']);
  const both = await service.run([...args, '--sample']);
  assert.deepEqual([both.code, both.stderr.includes('--history cannot be combined with --sample')], [2, true]);
});

test('--watch owns the terminal until Ctrl-C, then leaves the last figures and reports no failure', async () => {
  const id = await make();
  const screen = service.terminal(['sandbox', 'metrics', id, '--watch', '--interval', '1'], { columns: 60 });
  await screen.shows('\u001B[?1049h\u001B[?25l');
  await screen.shows(`${id}, every 1 s; Ctrl-C stops`);
  await screen.shows(/Ctrl-C stops[^]*Ctrl-C stops/);
  screen.type('\x03');
  assert.equal(await screen.ended(), 130);
  const after = screen.text.slice(screen.text.lastIndexOf('\u001B[?25h\u001B[?1049l'));
  assert.match(after, /memory/);
  assert.doesNotMatch(after, /berth:/);
});

test('--watch in a pipe prints a line per poll, up to the count, and ends with the sandbox', async () => {
  const id = await make();
  const { code, stdout } = await service.run(['sandbox', 'metrics', id, '--watch', '--interval', '1', '--count', '2']);
  assert.equal(code, 0);
  assert.match(stdout, /^(?:\S+Z {2}cpu \S+(?: %)? {2}memory .+ {2}disk .+ {2}network .+ in, .+ out\n){2}$/);
  const { seen, ended, child } = startBerth(['sandbox', 'metrics', id, '-w', '--interval', '1'], {
    env: service.environment(),
  });
  await until('it has looked', () => Promise.resolve(seen.stdout.includes('\n') ? true : null));
  await service.run(['sandbox', 'sleep', id]);
  const end = await ended;
  assert.equal(end.code, 1);
  assert.match(end.stderr, /\(sandbox_state_conflict\)/);
  assert.equal(child.exitCode, 1);
});

test('invalid arguments are refused with exit code 2 and the allowed values', async () => {
  const cases: readonly (readonly [string[], RegExp])[] = [
    [['get'], /missing required argument 'sandbox'/],
    [['get', 'n'.repeat(101)], /invalid sandbox 'n+': expected an id, a name or the start of an id/],
    [['rm'], /no sandboxes given/],
    [['rm', NONE, ''], /invalid sandbox ''/],
    [['resize', 'sbx_a'], /no size given: use --vcpu, --memory-gb or --disk-gb/],
    [['resize', 'sbx_a', '--vcpu', '0'], /It must be a whole number from 1 to 1024/],
    [['resize', 'sbx_a', '--memory', '4'], /unknown option '--memory'[^]*--memory-gb/],
    [['metrics', 'sbx_a', '--sample', '--watch'], /--watch cannot be combined with --sample/],
    [['metrics', 'sbx_a', '--count', '2'], /--interval and --count require --watch/],
    [['ls', '--limit', '0'], /It must be a whole number from 1 to 1000/],
  ];
  await Promise.all(
    cases.map(async ([words, expected]) => {
      const { code, stdout, stderr } = await service.run(['sandbox', ...words]);
      assert.deepEqual([code, stdout], [2, ''], `${words.join(' ')}: ${stderr}`);
      assert.match(stderr, expected);
    }),
  );
});
