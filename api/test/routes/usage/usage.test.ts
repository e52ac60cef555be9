// The two usage routes, over a ledger written by the test.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';
import { sql } from 'kysely';
import { newId } from '../../../src/store/database/ids.ts';
import { orgUsage } from '../../../src/services/usage/usage.ts';
import { insertProject } from '../../../src/store/orgs/projects.ts';
import { startApi, type Answer, type TestApi, type TestOrg } from '../../world/api.ts';
import { openWatched } from '../../world/watched-database.ts';

const TEAM: Plan = {
  ...SELF_HOSTED_PLAN,
  id: 'team',
  name: 'Team',
  includedMachineHours: 100,
  overageUsdPerMachineHour: 0.25,
};
const RATES = { vcpuHourUsd: 0.04, memoryGbHourUsd: 0.005, diskGbHourUsd: 0.0002 };

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false, plans: [TEAM], settings: { machineRates: RATES } });
});
after(() => api.close());

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** Five days before now, on any day of the month. */
const STARTED_AT = new Date(Date.now() - 5 * DAY_MS);

async function makeOrg(plan = TEAM.id): Promise<TestOrg> {
  const org = await api.makeOrg();
  await api.db
    .updateTable('subscription')
    .set({ plan, started_at: STARTED_AT, period_anchor: STARTED_AT })
    .where('org_id', '=', org.orgId)
    .execute();
  return org;
}

interface Use {
  hours: number;
  projectId?: string;
  endUserId?: string | null;
  /** Start, in hours after that of the period. */
  after?: number;
  size?: [vcpu: number, memoryGb: number, diskGb: number];
}

/** Adds a closed interval. */
async function use(
  org: TestOrg,
  { hours, projectId = org.projectId, endUserId = null, after = 1, size = [1, 2, 10] }: Use,
): Promise<void> {
  const from = STARTED_AT.getTime() + after * HOUR_MS;
  await sql`
    insert into usage_interval (id, sandbox_id, org_id, project_id, end_user_id, vcpu, memory_gb, disk_gb, during)
    values (${newId('usageInterval')}, ${newId('sandbox')}, ${org.orgId}, ${projectId}, ${endUserId},
      ${size[0]}, ${size[1]}, ${size[2]},
      tstzrange(${new Date(from)}, ${new Date(from + hours * HOUR_MS)}))`.execute(api.db);
}

async function makeProject(org: TestOrg, limit: number | null = null): Promise<string> {
  const id = newId('project');
  await insertProject(api.db, {
    id,
    org_id: org.orgId,
    name: 'P',
    use_case: 'internal',
    sandbox_machine_hour_limit: limit,
  });
  return id;
}

const ask = (org: TestOrg, query = ''): Promise<Answer> =>
  api.call('GET', `/v1/orgs/${org.orgId}/usage${query}`, { token: org.token });
const usageOf = async (org: TestOrg, query = ''): Promise<Answer['body']> => {
  const { status, body } = await ask(org, query);
  assert.equal(status, 200);
  return body;
};
const endUsersOf = async (org: TestOrg): Promise<Answer['body']> => {
  const { status, body } = await api.call('GET', `/v1/orgs/${org.orgId}/usage/end-users`, { token: org.token });
  assert.equal(status, 200);
  return body;
};

test("the billing period follows the database clock, never the replica's, in every view", async (t) => {
  const org = await makeOrg();
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 70 * DAY_MS });
  const told = await usageOf(org);
  const { body } = await api.call('GET', `/v1/orgs/${org.orgId}/subscription`, { token: org.token });
  assert.equal(told.periodStartsAt, STARTED_AT.toISOString());
  assert.deepEqual(
    [body.subscription.periodStartsAt, body.subscription.periodEndsAt],
    [told.periodStartsAt, told.periodEndsAt],
  );
});

test('a response shows one instant: usage of org, project and end user is one statement', async () => {
  const org = await makeOrg();
  await use(org, { hours: 30, endUserId: 'ann' });
  await use(org, { hours: 90, projectId: await makeProject(org) });
  const watched = openWatched(api.databaseUrl);
  try {
    const told = await orgUsage({ ...api.context, db: watched.db }, org.orgId, {
      projectId: org.projectId,
      endUserId: 'ann',
    });
    assert.deepEqual([told.usedMachineHours, told.overageMachineHours], [30, 20]);
    assert.equal(watched.queries.filter(({ sql: text }) => text.includes('usage_total')).length, 1);
  } finally {
    await watched.db.destroy();
  }
});

test('an org without usage gets its allowance, cap and period', async () => {
  const org = await makeOrg();
  const { periodStartsAt, periodEndsAt, usageAlert, ...usage } = await usageOf(org);
  assert.deepEqual(usage, {
    includedMachineHours: 100,
    sandboxMachineHourLimit: 100,
    sandboxMachineHourLimitOverride: null,
    sandboxOverageEnabled: false,
    usedMachineHours: 0,
    remainingMachineHours: 100,
    overageMachineHours: 0,
    estimatedOverageUsd: 0,
  });
  assert.equal(periodStartsAt, STARTED_AT.toISOString());
  assert.ok(Date.parse(periodEndsAt) > Date.now());
  assert.deepEqual(usageAlert, {
    percentUsed: 0,
    status: 'normal',
    message: '0 of 100 machine hours are used in this billing period.',
  });
});

test('on the self-hosted plan there is no cap and no remaining hours', async () => {
  const org = await makeOrg(SELF_HOSTED_PLAN.id);
  await use(org, { hours: 3 });
  const usage = await usageOf(org);
  assert.deepEqual(
    [usage.includedMachineHours, usage.sandboxMachineHourLimit, usage.remainingMachineHours, usage.usedMachineHours],
    [null, null, null, 3],
  );
  assert.deepEqual(
    [usage.overageMachineHours, usage.estimatedOverageUsd, usage.usageAlert.status],
    [0, null, 'normal'],
  );
});

for (const [hours, status, percentUsed, remaining] of [
  [79.5, 'normal', 79.5, 20.5],
  [80, 'warning', 80, 20],
  [100, 'reached', 100, 0],
  [101, 'exceeded', 101, 0],
] as const) {
  test(`${hours} of 100 hours: ${status}, ${remaining} remaining`, async () => {
    const org = await makeOrg();
    await use(org, { hours });
    const usage = await usageOf(org);
    assert.deepEqual(
      [usage.usedMachineHours, usage.usageAlert.status, usage.usageAlert.percentUsed, usage.remainingMachineHours],
      [hours, status, percentUsed, remaining],
    );
  });
}

test("hours above the plan's are counted with an estimated price, whatever the cap", async () => {
  const org = await makeOrg();
  await api.db
    .updateTable('subscription')
    .set({ overage_enabled: true, machine_hour_limit: 200 })
    .where('org_id', '=', org.orgId)
    .execute();
  await use(org, { hours: 110 });
  const usage = await usageOf(org);
  assert.deepEqual(
    [
      usage.sandboxMachineHourLimit,
      usage.sandboxMachineHourLimitOverride,
      usage.sandboxOverageEnabled,
      usage.remainingMachineHours,
    ],
    [200, 200, true, 90],
  );
  assert.deepEqual([usage.overageMachineHours, usage.estimatedOverageUsd], [10, 2.5]);
});

test('with overage and no explicit cap there is no cap', async () => {
  const org = await makeOrg();
  await api.db.updateTable('subscription').set({ overage_enabled: true }).where('org_id', '=', org.orgId).execute();
  await use(org, { hours: 110 });
  const usage = await usageOf(org);
  assert.deepEqual(
    [usage.includedMachineHours, usage.sandboxMachineHourLimit, usage.remainingMachineHours, usage.overageMachineHours],
    [100, null, null, 10],
  );
});

test('machine time before the period is not counted, and intervals across its start are cut', async () => {
  const org = await makeOrg();
  await use(org, { hours: 10, after: -20 });
  await use(org, { hours: 3, after: -1 });
  assert.equal((await usageOf(org)).usedMachineHours, 2);
});

test('running VMs are counted until now, for org, project and end user', async () => {
  const org = await makeOrg();
  await sql`
    insert into usage_interval (id, sandbox_id, org_id, project_id, end_user_id, vcpu, memory_gb, disk_gb, during)
    values (${newId('usageInterval')}, ${newId('sandbox')}, ${org.orgId}, ${org.projectId}, 'runs', 1, 1, 10,
      tstzrange(now() - interval '2 hours', null))`.execute(api.db);
  const { endUsers } = await endUsersOf(org);
  const answers = [
    endUsers[0].machineHours,
    (await usageOf(org)).usedMachineHours,
    (await usageOf(org, `?projectId=${org.projectId}`)).usedMachineHours,
    (await usageOf(org, '?endUserId=runs')).usedMachineHours,
  ];
  for (const [index, hours] of answers.entries()) {
    assert.ok(hours >= 2 && hours < 2.1, String(hours));
    assert.ok(index === 0 || hours >= answers[index - 1]);
  }
});

test("with projectId hours, cap and alert are the project's; allowance and overage the org's", async () => {
  const org = await makeOrg();
  const capped = await makeProject(org, 10);
  const uncapped = await makeProject(org);
  await use(org, { hours: 9, projectId: capped });
  await use(org, { hours: 95, projectId: uncapped });
  const ofCapped = await usageOf(org, `?projectId=${capped}`);
  assert.deepEqual(
    [
      ofCapped.usedMachineHours,
      ofCapped.sandboxMachineHourLimit,
      ofCapped.sandboxMachineHourLimitOverride,
      ofCapped.remainingMachineHours,
    ],
    [9, 10, 10, 1],
  );
  assert.deepEqual([ofCapped.usageAlert.status, ofCapped.usageAlert.percentUsed], ['warning', 90]);
  assert.deepEqual(
    [ofCapped.includedMachineHours, ofCapped.overageMachineHours, ofCapped.estimatedOverageUsd],
    [100, 4, 1],
  );
  const ofUncapped = await usageOf(org, `?projectId=${uncapped}`);
  assert.deepEqual(
    [
      ofUncapped.usedMachineHours,
      ofUncapped.sandboxMachineHourLimit,
      ofUncapped.remainingMachineHours,
      ofUncapped.usageAlert.status,
    ],
    [95, null, null, 'normal'],
  );
});

test("a project's cap above the org's is reduced to the org's", async () => {
  const org = await makeOrg();
  const projectId = await makeProject(org, 500);
  const usage = await usageOf(org, `?projectId=${projectId}`);
  assert.deepEqual([usage.sandboxMachineHourLimit, usage.sandboxMachineHourLimitOverride], [100, 500]);
});

test("with endUserId the hours are the end user's; cap and alert stay those of org or project", async () => {
  const org = await makeOrg();
  const projectId = await makeProject(org, 20);
  await use(org, { hours: 50, endUserId: 'ann' });
  await use(org, { hours: 4, endUserId: 'ann', projectId });
  await use(org, { hours: 15, endUserId: 'bob', projectId });
  const ofAnn = await usageOf(org, '?endUserId=ann');
  assert.deepEqual([ofAnn.usedMachineHours, ofAnn.remainingMachineHours, ofAnn.usageAlert.percentUsed], [54, 31, 69]);
  const inProject = await usageOf(org, `?endUserId=ann&projectId=${projectId}`);
  assert.deepEqual(
    [inProject.usedMachineHours, inProject.remainingMachineHours, inProject.usageAlert.status],
    [4, 1, 'warning'],
  );
  assert.equal((await usageOf(org, '?endUserId=nobody')).usedMachineHours, 0);
});

test('an end user id that looks like SQL, JSON or a path is treated as plain text', async () => {
  const org = await makeOrg();
  const names = ["'; drop table usage_interval; --", '{"a":[1]}', '../../%2e', 'ünïcödé 🛥', ' '];
  for (const [index, endUserId] of names.entries()) await use(org, { hours: index + 1, endUserId });
  for (const [index, endUserId] of names.entries())
    assert.equal((await usageOf(org, `?endUserId=${encodeURIComponent(endUserId)}`)).usedMachineHours, index + 1);

  assert.deepEqual(
    (await endUsersOf(org)).endUsers.map(({ endUserId }: { endUserId: string }) => endUserId),
    names.toReversed(),
  );
});

test('an invalid filter is refused by name', async () => {
  const org = await makeOrg();
  const other = await makeOrg();
  for (const projectId of [other.projectId, newId('project'), 'prj_x', 'x%00y']) {
    const { status, body } = await ask(org, `?projectId=${projectId}`);
    assert.deepEqual([status, body.error.code], [400, 'unknown_project'], projectId);
  }
  for (const query of [
    '?projectId=',
    '?endUserId=',
    `?endUserId=${'x'.repeat(513)}`,
    '?endUserId=%00',
    '?projectId=a&projectId=b',
  ]) {
    const { status, body } = await ask(org, query);
    assert.deepEqual([status, body.error.code], [400, 'invalid_request'], query);
  }
});

test('usage by day covers whole days, running VMs up to now, and projects and end users', async () => {
  const org = await makeOrg();
  const projectId = await makeProject(org, 10);
  const midnightMs = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const afterOf = (ms: number): number => (ms - STARTED_AT.getTime()) / HOUR_MS;
  // Two hours on each side of the last midnight but one.
  await use(org, { hours: 4, projectId, endUserId: 'customer', after: afterOf(midnightMs - DAY_MS) - 2 });
  await use(org, { hours: 1, after: afterOf(midnightMs - 2 * DAY_MS) });
  const daysOf = async (query: string): Promise<number[]> => {
    const { status, body } = await api.call('GET', `/v1/orgs/${org.orgId}/usage/daily${query}`, { token: org.token });
    assert.equal(status, 200, JSON.stringify(body));
    const dates = body.days.map(({ date }: { date: string }) => Date.parse(date));
    assert.deepEqual(
      dates,
      dates.map((_: number, index: number) => midnightMs - (dates.length - 1 - index) * DAY_MS),
    );
    return body.days.map(({ machineHours }: { machineHours: number }) => machineHours);
  };
  assert.deepEqual(await daysOf('?days=4'), [0, 3, 2, 0]);
  assert.deepEqual(await daysOf('?days=1'), [0]);
  assert.deepEqual(await daysOf(`?days=3&projectId=${projectId}`), [2, 2, 0]);
  assert.deepEqual(await daysOf('?days=3&endUserId=customer'), [2, 2, 0]);
  assert.equal((await daysOf('')).length, 31);
  for (const [query, code] of [
    ['days=0', 'invalid_request'],
    ['days=93', 'invalid_request'],
    ['projectId=prj_nope', 'unknown_project'],
  ] as const) {
    const path = `/v1/orgs/${org.orgId}/usage/daily?${query}`;
    const { status, body } = await api.call('GET', path, { token: org.token });
    assert.deepEqual([status, body.error.code], [400, code], query);
  }
});

test('a deleted project still has its usage', async () => {
  const org = await makeOrg();
  const projectId = await makeProject(org, 10);
  await use(org, { hours: 5, projectId });
  await api.db.updateTable('project').set({ deleted_at: new Date() }).where('id', '=', projectId).execute();
  assert.equal((await usageOf(org, `?projectId=${projectId}`)).usedMachineHours, 5);
  assert.equal((await usageOf(org)).usedMachineHours, 5);
});

test('end users are sorted by usage, then id, with the cost of their VMs by size', async () => {
  const org = await makeOrg();
  const elsewhere = await makeProject(org);
  await use(org, { hours: 1, endUserId: 'b' });
  await use(org, { hours: 1, endUserId: 'a' });
  await use(org, { hours: 2, endUserId: 'most', size: [4, 8, 40] });
  await use(org, { hours: 1, endUserId: 'most', after: 30, projectId: elsewhere });
  await use(org, { hours: 50, endUserId: null });
  const { periodStartsAt, periodEndsAt, endUsers } = await endUsersOf(org);
  const smallHour = 0.052;
  assert.deepEqual(endUsers, [
    { endUserId: 'most', machineHours: 3, estimatedCogsUsd: 0.468 },
    { endUserId: 'a', machineHours: 1, estimatedCogsUsd: smallHour },
    { endUserId: 'b', machineHours: 1, estimatedCogsUsd: smallHour },
  ]);
  const usage = await usageOf(org);
  assert.deepEqual([periodStartsAt, periodEndsAt], [usage.periodStartsAt, usage.periodEndsAt]);
});

test('without an active billing period both routes return 402', async () => {
  const org = await makeOrg();
  await api.db.updateTable('subscription').set({ status: 'canceled' }).where('org_id', '=', org.orgId).execute();
  for (const path of ['usage', 'usage/end-users']) {
    const { status, body } = await api.call('GET', `/v1/orgs/${org.orgId}/${path}`, { token: org.token });
    assert.deepEqual([status, body.error.code], [402, 'no_active_plan']);
  }
});

test('usage needs billing.read, which operators and viewers lack and keys can have', async () => {
  const paths = ['usage', 'usage/end-users'].map((name) => `/v1/orgs/${api.orgId}/${name}`);
  for (const path of paths) {
    for (const role of ['operator', 'viewer'] as const) {
      const { status, body } = await api.call('GET', path, { token: await api.makeKey({ role }) });
      assert.deepEqual([status, body.error.code], [403, 'permission_denied']);
      assert.match(body.error.message, /billing\.read/);
    }
    assert.equal((await api.call('GET', path, { token: await api.makeKey({ scopes: ['sandbox.read'] }) })).status, 403);
    assert.equal(
      (await api.call('GET', path, { token: await api.makeKey({ role: 'member', scopes: ['billing.read'] }) })).status,
      200,
    );
  }
});
