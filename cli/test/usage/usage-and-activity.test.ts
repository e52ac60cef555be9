// `berth usage` and `berth activity` against a real service.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ActivityEntry } from '@berth/contract/activity/feed.ts';
import { sql } from 'kysely';
import { insertActivity } from '@berth/api/store/activity/activity.ts';
import { until } from '../../../os/test/until.ts';
import { startBerth } from '../world/berth.ts';
import { masked, Service } from '../world/service.ts';

let service: Service;
before(async () => {
  service = await Service.start({ durable: false });
});
after(() => service.close());

/** Ids of sandboxes that need not exist. */
const [NOTED, MANY, FOLLOWED, EXPORTED] = ['a', 'b', 'c', 'd'].map((letter) => `sbx_${letter.repeat(24)}`) as [
  string,
  string,
  string,
  string,
];

const org = (): string => `/v1/orgs/${service.api.orgId}`;

/** Writes entries of one kind about a sandbox. */
async function note(count: number, sandboxId: string): Promise<void> {
  const { db, orgId, projectId } = service.api;
  for (let made = 0; made < count; made += 1) {
    const actor = { kind: 'system', id: null, userId: null } as const;
    await insertActivity(db, {
      orgId,
      projectId,
      sandboxId,
      actor,
      kind: 'sandbox_ready',
      details: { reason: `\u001B[2Jno ${made}` },
    });
  }
}

/** Records past hours of an awake sandbox of an end user. */
async function used(hours: number, endUserId: string | null): Promise<void> {
  const { db, orgId, projectId } = service.api;
  const sandbox = await service.api.makeSandbox('stopped', { end_user_id: endUserId });
  const size = { vcpu: 1, memory_gb: 1, disk_gb: 10 };
  const during = `[${new Date(Date.now() - hours * 3_600_000).toISOString()},${new Date().toISOString()})`;
  await db
    .insertInto('usage_interval')
    .values({
      id: `use_${sandbox.id.slice(4)}`,
      sandbox_id: sandbox.id,
      org_id: orgId,
      project_id: projectId,
      end_user_id: endUserId,
      ...size,
      during,
    })
    .execute();
}

test('usage shows plan, period and cap with a bar in a terminal, and the response with --json', async () => {
  const { db, orgId } = service.api;
  await db.updateTable('subscription').set({ machine_hour_limit: 10 }).where('org_id', '=', orgId).execute();
  const [terminal, piped, json, alone] = await Promise.all([
    service.show(['usage'], { columns: 60, env: { NO_COLOR: '1' } }),
    service.run(['usage', 'show']),
    service.run(['usage', '--json']),
    service.run(['usage', '--end-user', 'nobody']),
  ]);
  assert.match(
    terminal.text,
    /^used +0 h of 10 h \(0 %\)\n +░{24}\nremaining +10 h\nalert +.+\nincluded +unlimited\nown cap +10 h\noverage allowed +no\n$/m,
  );
  assert.match(
    piped.stdout,
    /^scope +the org\nplan +Self-hosted, active\nperiod +\S+Z to \S+Z \(in \d+ d\)\nused +0 h of 10 h \(0 %\)\nremaining /m,
  );
  assert.doesNotMatch(piped.stdout, /[█░]/);
  assert.deepEqual(JSON.parse(json.stdout), await service.body(`${org()}/usage`));
  assert.match(alone.stdout, /^scope +end user nobody$/m);
});

test("a missing object is refused with the API's message", async () => {
  const { code, stdout, stderr } = await service.run(['usage', '--project', 'prj_nope']);
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /\(unknown_project\)/);
  const none = await service.run(['usage', 'end-users']);
  assert.deepEqual([none.code, none.stdout], [0, '']);
  assert.match(none.stderr, /^no usage by end users since \S+Z$/m);
});

test('end users are listed in a table, highest first, with their share', async () => {
  const { db, orgId } = service.api;
  const anchor = new Date(Date.now() - 20 * 86_400_000);
  await db
    .updateTable('subscription')
    .set({ period_anchor: anchor, started_at: anchor })
    .where('org_id', '=', orgId)
    .execute();
  await used(3, 'big \u001B[2J\u202E');
  await used(1, 'small');
  const [terminal, piped, json] = await Promise.all([
    service.show(['usage', 'end-users'], { columns: 60, env: { NO_COLOR: '1' } }),
    service.run(['usage', 'end-users']),
    service.run(['usage', 'end-users', '--json']),
  ]);
  assert.match(
    terminal.text,
    /^END USER +USED {2}SHARE +% {2}EST\. COST\nbig \\u001b\[2J\\u202e +3 h {2}█{9}░{3} {2}7[45] % +\$0\.\d\d\nsmall +1 h {2}█{3}░{9} {2}2[45] % +\$0\.\d\d\n$/,
  );
  assert.match(piped.stdout, /^END USER +USED +SHARE {2}EST\. COST\n/);
  assert.deepEqual(JSON.parse(json.stdout), await service.body(`${org()}/usage/end-users`));
});

test('usage by day is listed in a table with bars, and the response with --json', async () => {
  await used(1, 'daily');
  const [terminal, json] = await Promise.all([
    service.show(['usage', 'daily', '--days', '3'], { columns: 60, env: { NO_COLOR: '1' } }),
    service.run(['usage', 'daily', '--days', '3', '--end-user', 'daily', '--json']),
  ]);
  const [title, ...days] = terminal.text.trimEnd().split('\n');
  assert.match(title ?? '', /^DAY \(UTC\) +USED/);
  assert.equal(days.length, 3);
  for (const day of days) assert.match(day, /^\d{4}-\d\d-\d\d +[\d.]+ h {2}[█░]{24}$/);
  const answer = (await service.body(`${org()}/usage/daily?days=3&endUserId=daily`)) as {
    days: { machineHours: number }[];
  };
  assert.deepEqual(JSON.parse(json.stdout), answer);
  const sum = answer.days.reduce((total, { machineHours }) => total + machineHours, 0);
  assert.ok(Math.abs(sum - 1) < 0.001, String(sum));
});

test('activity is shown newest first, up to the requested count', async () => {
  await note(30, NOTED);
  const [table, narrow, json, filtered, all] = await Promise.all([
    service.run(['activity', '--sandbox', NOTED, '--limit', '2']),
    service.show(['activity', '--sandbox', NOTED, '--limit', '2'], { columns: 60, env: { NO_COLOR: '1' } }),
    service.run(['activity', '--sandbox', NOTED, '--json']),
    service.run(['activity', '--kind', 'org_created', '--json']),
    service.run(['activity', '--sandbox', NOTED, '--all']),
  ]);
  assert.match(
    masked(table.stdout),
    /^AT +KIND +SUBJECT +ACTOR +DETAILS\n2026-\S+ {2}sandbox_ready +sbx_x{24} +system +\\u001b\[2Jno 29\n2026-\S+ {2}sandbox_ready +sbx_x{24} +system +\\u001b\[2Jno 28\n$/,
  );
  assert.deepEqual([table.code, table.stderr], [0, '']);
  assert.match(
    masked(narrow.text),
    /^AT +KIND +SUBJECT\n(?:2026-\S+ {2}sandbox_ready +sbx_a{11}…\n){2}more entries exist: use --limit/,
  );
  assert.deepEqual(JSON.parse(json.stdout), await service.body(`${org()}/activity?sandboxId=${NOTED}&limit=20`));
  assert.deepEqual(JSON.parse(filtered.stdout), await service.body(`${org()}/activity?kind=org_created&limit=20`));
  assert.equal(all.stdout.split('\n').length, 1 + 30 + 1);
});

test('--all reads every page, in constant columns', async () => {
  await note(1_005, MANY);
  const { stdout, code } = await service.run(['activity', '--sandbox', MANY, '--all']);
  const lines = stdout.trimEnd().split('\n');
  assert.deepEqual([code, lines.length], [0, 1_006]);
  assert.deepEqual(new Set(lines.slice(1).map((line) => line.indexOf(MANY))), new Set([lines[0]?.indexOf('SUBJECT ')]));
  const numbers = lines.slice(1).map((line) => Number(/no (\d+)$/.exec(line)?.[1]));
  assert.deepEqual(
    numbers,
    Array.from({ length: 1_005 }, (_, at) => 1_004 - at),
  );
});

test('--follow starts with the latest entries, shows each new one and exits cleanly at Ctrl-C', async () => {
  await note(4, FOLLOWED);
  const words = ['activity', '--follow', '--limit', '2', '--sandbox', FOLLOWED, '--json'];
  const { child, seen, ended } = startBerth(words, { env: service.environment() });
  const shown = (): string[] => [...seen.stdout.matchAll(/"reason":"[^"]*no (\d+)"/g)].map(([, number = '']) => number);
  await until('it began', () => Promise.resolve(shown().length >= 2 ? true : null));
  await note(3, FOLLOWED);
  await until('all came', () => Promise.resolve(shown().length >= 5 ? true : null));
  child.kill('SIGINT');
  const { code, stderr } = await ended;
  assert.deepEqual([code, stderr], [130, '']);
  assert.deepEqual(shown(), ['2', '3', '0', '1', '2']);
});

test('--export prints all entries as NDJSON, oldest first, and continues after a cursor', async () => {
  const { db, orgId } = service.api;
  await note(1_005, EXPORTED);
  await sql`update activity set at = at - interval '1 hour' where sandbox_id = ${EXPORTED}`.execute(db);
  const { stdout, stderr, code } = await service.run(['activity', '--export']);
  assert.deepEqual([code, stderr], [0, '']);
  const lines = stdout.trimEnd().split('\n');
  const entries = lines.map((line): ActivityEntry & { cursor: string } => JSON.parse(line));
  const own = entries.filter(({ sandboxId }) => sandboxId === EXPORTED);
  assert.deepEqual(
    own.map(({ reason }) => Number(/no (\d+)$/.exec(reason ?? '')?.[1])),
    Array.from({ length: 1_005 }, (_, at) => at),
  );
  const cursor = entries.at(-3)?.cursor ?? '';
  const rest = await service.run(['activity', '--export', '--after', cursor, '--json', '--org', orgId]);
  assert.equal(rest.stdout, `${lines.slice(-2).join('\n')}\n`);
  const end = await service.run(['activity', '--export', '--after', entries.at(-1)?.cursor ?? '']);
  assert.deepEqual([end.code, end.stdout], [0, '']);
});

test('invalid arguments are refused with exit code 2 and the allowed values', async () => {
  const cases: readonly (readonly [string[], RegExp])[] = [
    [['activity', '--all', '--limit', '3'], /--all cannot be combined with --limit/],
    [['activity', '--all', '--follow'], /--follow cannot be combined with --all/],
    [['activity', '--after', 'x'], /--after requires --export/],
    [['activity', '--export', '--kind', 'sandbox_ready'], /--export cannot be combined with --kind/],
    [['activity', '--limit', '1001'], /It must be a whole number from 1 to 1000/],
    [['usage', '--end-user', ''], /1 to 512 characters/],
    [['usage', '--capp'], /unknown option '--capp'/],
  ];
  await Promise.all(
    cases.map(async ([words, expected]) => {
      const { code, stdout, stderr } = await service.run(words);
      assert.deepEqual([code, stdout], [2, ''], `${words.join(' ')}: ${stderr}`);
      assert.match(stderr, expected);
    }),
  );
  const kind = await service.run(['activity', '--kind', 'nonsense']);
  assert.equal(kind.code, 2);
  assert.match(kind.stderr, /--kind must be one of "org_created", .+ not "nonsense" \(invalid_request\)/);
});
