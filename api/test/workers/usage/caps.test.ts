// The cap watch on exact numbers with a test clock: warnings, stops and exceptions.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';
import { sql } from 'kysely';
import { periodAt } from '../../../src/rules/billing/period.ts';
import { SLEEP_AGAIN_AFTER_MS } from '../../../src/rules/usage/caps.ts';
import { capUsagesAt } from '../../../src/services/usage/caps.ts';
import { newId } from '../../../src/store/database/ids.ts';
import { insertProject } from '../../../src/store/orgs/projects.ts';
import type { NewSandbox } from '../../../src/store/database/schema.ts';
import { purgeCapWarnings } from '../../../src/workers/retention.ts';
import { CapWatch } from '../../../src/workers/usage/caps.ts';
import { startApi, type TestApi, type TestOrg } from '../../world/api.ts';
import { addRunning, addUsed, HOUR_MS, setSubscription } from '../../world/machine-time.ts';
import { openWatched } from '../../world/watched-database.ts';

const METERED: Plan = { ...SELF_HOSTED_PLAN, id: 'metered', name: 'Metered', includedMachineHours: 10 };
const GRACE_SECONDS = 60;

let api: TestApi;
/** New org for each test, as closed intervals cannot be deleted. */
let org: TestOrg;
let ownerToken: string;
let periodStartsAt: Date;
/** Instant at which the VM of {@link runner} has used up the cap of 10 hours. */
let reachedAt: number;
let nowMs: number;
before(async () => {
  api = await startApi({ durable: false, plans: [METERED] });
});
after(() => api.close());
beforeEach(async () => {
  await sql`update sandbox set status = 'deleted', deleted_at = now() where status <> 'deleted'`.execute(api.db);
  await sql`
    update usage_interval set during = tstzrange(lower(during), lower(during) + interval '1 second')
    where upper_inf(during)`.execute(api.db);
  org = await api.makeOrg();
  const session = await api.makeSession({ role: null });
  await api.db.insertInto('membership').values({ org_id: org.orgId, user_id: session.userId, role: 'owner' }).execute();
  ownerToken = session.token;
  ({ periodStartsAt } = await setSubscription(api.db, org.orgId, { plan: METERED.id }));
  // On a whole millisecond, for so is usage counted.
  reachedAt = Date.now();
  nowMs = reachedAt;
  api.steps.length = 0;
});

function watch(leads = (): boolean => true): CapWatch {
  const { db, log, lifecycle, plans } = api.context;
  return new CapWatch({
    context: { db, log, stopping: new AbortController().signal },
    plans,
    lifecycle,
    session: { isLeader: () => Promise.resolve(leads()) },
    graceSeconds: GRACE_SECONDS,
    readNow: () => Promise.resolve(new Date(nowMs)),
  });
}

interface Awake {
  /** Cap in hours, used up at {@link reachedAt}. */
  hours?: number;
  projectId?: string;
}

/** Creates an awake sandbox; without `hours` its usage is irrelevant to the test. */
async function awake(
  { hours, projectId = org.projectId }: Awake = {},
  changed: Partial<NewSandbox> = {},
): Promise<string> {
  const { id } = await api.makeSandbox('ready', { org_id: org.orgId, project_id: projectId, ...changed });
  const of = { orgId: org.orgId, projectId };
  if (hours !== undefined) await addRunning(api.db, of, id, new Date(reachedAt - hours * HOUR_MS));
  return id;
}
const EPHEMERAL: Partial<NewSandbox> = {
  mode: 'ephemeral',
  ttl_seconds: 86_400,
  expires_at: new Date(Date.now() + 86_400_000),
  persistence_policy: 'always_on',
};
async function otherProject(): Promise<string> {
  const row = { id: newId('project'), org_id: org.orgId, name: 'other', use_case: 'internal', created_by: org.userId };
  return (await insertProject(api.db, row)).id;
}
const setGuardrails = (body: object): Promise<unknown> =>
  api.call('PATCH', `/v1/orgs/${org.orgId}/subscription/usage-guardrails`, { body, token: ownerToken });
const setProjectCap = (limit: number | null, projectId = org.projectId): Promise<unknown> =>
  api.call('PATCH', `/v1/orgs/${org.orgId}/projects/${projectId}/usage-guardrails`, {
    body: { sandboxMachineHourLimit: limit },
    token: ownerToken,
  });
const statusOf = async (id: string): Promise<string> =>
  (await api.db.selectFrom('sandbox').select('status').where('id', '=', id).executeTakeFirstOrThrow()).status;
const asked = (): string[] => api.steps.map(({ kind, step }) => `${kind} ${step.sandboxId}`);
interface Warning {
  subject_id: string;
  details: {
    percent: number;
    capMachineHours: number;
    usedMachineHours: number;
    reason: string;
    overageEnabled: boolean;
  };
}
const warnings = async (): Promise<Warning[]> => {
  const { rows } = await sql<Warning>`
    select subject_id, details from activity
    where org_id = ${org.orgId} and kind = 'usage_cap_warning' order by seq`.execute(api.db);
  return rows;
};
const percents = async (): Promise<number[]> => (await warnings()).map(({ details }) => details.percent);
/** Runs a pass at each of the instants. */
async function look(capWatch: CapWatch, ...instantsMs: number[]): Promise<void> {
  for (const instant of instantsMs) {
    nowMs = instant;
    await capWatch.tick();
  }
}

test('the org is warned once each in the millisecond when 80 % and 100 % of its cap are used', async () => {
  await awake({ hours: 10 });
  const capWatch = watch();
  const at80 = reachedAt - 2 * HOUR_MS;
  await look(capWatch, at80 - 1);
  assert.deepEqual(await percents(), []);
  await look(capWatch, at80, at80 + 1);
  assert.deepEqual(await percents(), [80]);
  await look(capWatch, reachedAt - 1);
  assert.deepEqual(await percents(), [80]);
  // By another leader too.
  await look(watch(), reachedAt, reachedAt + 1);
  const given = await warnings();
  assert.deepEqual(
    given.map(({ subject_id, details }) => [
      subject_id,
      details.percent,
      details.capMachineHours,
      details.usedMachineHours,
    ]),
    [
      [org.orgId, 80, 10, 8],
      [org.orgId, 100, 10, 10],
    ],
  );
  assert.match(given[0]?.details.reason ?? '', /^80 % of the cap of the org org_\w+ reached: 8 of 10 machine hours/);
  assert.match(given[1]?.details.reason ?? '', /awake sandboxes go to sleep 60 s later/);
  const { activity } = (
    await api.call('GET', `/v1/orgs/${org.orgId}/activity?kind=usage_cap_warning`, { token: org.token })
  ).body;
  assert.deepEqual(
    [activity[0].actor.kind, activity[0].subject.kind, activity[0].details.percent],
    ['system', 'org', 100],
  );
  assert.match(activity[0].reason, /^100 % of the cap of the org org_\w+ reached/);
});

test('a pass that finds both thresholds reached warns of both, in order', async () => {
  await awake({ hours: 10 });
  await look(watch(), reachedAt + HOUR_MS);
  assert.deepEqual(await percents(), [80, 100]);
});

test('awake sandboxes sleep at the end of the grace, to the millisecond; the feed names the cap', async () => {
  const id = await awake({ hours: 10 });
  const capWatch = watch();
  await look(capWatch, reachedAt - 1, reachedAt, reachedAt + GRACE_SECONDS * 1_000 - 1);
  assert.deepEqual(asked(), []);
  await look(capWatch, reachedAt + GRACE_SECONDS * 1_000);
  assert.deepEqual([asked(), await statusOf(id)], [[`sleep ${id}`], 'sleeping']);
  const { rows } = await sql<{ actor_kind: string; details: Record<string, unknown> }>`
    select actor_kind, details from activity where sandbox_id = ${id} and kind = 'sandbox_sleep_requested'`.execute(
    api.db,
  );
  const details = rows[0]?.details;
  assert.equal(rows[0]?.actor_kind, 'system');
  assert.deepEqual(
    [details?.['capScope'], details?.['capScopeId'], details?.['capMachineHours'], details?.['from'], details?.['to']],
    ['org', org.orgId, 10, 'ready', 'sleeping'],
  );
  assert.match(
    JSON.stringify(details?.['reason']),
    /machine_hour_limit.*the cap of the org org_\w+ is 10 machine hours/,
  );
  await look(capWatch, nowMs + 1_000);
  assert.equal(api.steps.length, 1, 'it is asked once');
});

test('the grace starts at the pass that finds the cap reached, also for the next leader', async () => {
  const id = await awake({ hours: 10 });
  await look(watch(), reachedAt + 5_000);
  await look(watch(), reachedAt + 5_000 + GRACE_SECONDS * 1_000 - 1);
  assert.deepEqual(asked(), []);
  await look(watch(), reachedAt + 5_000 + GRACE_SECONDS * 1_000);
  assert.deepEqual(asked(), [`sleep ${id}`]);
});

test('sleep_resume sandboxes sleep, ephemeral ones end, always_on ones sleep last; persistent ones stay', async () => {
  const always = await awake({ hours: 10 }, { persistence_policy: 'always_on' });
  const [first, second] = [await awake(), await awake()];
  const ends = await awake({}, EPHEMERAL);
  const capWatch = watch();
  await look(capWatch, reachedAt, reachedAt + GRACE_SECONDS * 1_000);
  assert.deepEqual(asked().slice(0, 3).toSorted(), [`destroy ${ends}`, `sleep ${first}`, `sleep ${second}`].toSorted());
  assert.deepEqual(asked().slice(3), [`sleep ${always}`]);
  assert.deepEqual(await Promise.all([first, second, ends, always].map(statusOf)), [
    'sleeping',
    'sleeping',
    'destroying',
    'sleeping',
  ]);
});

test('sandboxes created or woken beyond the cap by earlier calls sleep at the next pass', async () => {
  await awake({ hours: 10 });
  const capWatch = watch();
  await look(capWatch, reachedAt, reachedAt + GRACE_SECONDS * 1_000);
  const late = await awake();
  await look(capWatch, nowMs + 1);
  assert.equal(await statusOf(late), 'sleeping');
});

for (const [what, lift] of [
  ['a raise of the cap', () => setGuardrails({ sandboxMachineHourLimit: 20 })],
  ['overage that is switched on', () => setGuardrails({ sandboxOverageEnabled: true })],
  ['another plan', () => setSubscription(api.db, org.orgId, { plan: SELF_HOSTED_PLAN.id })],
] as const) {
  test(`${what} within the grace keeps sandboxes awake, and a new breach has its own grace`, async () => {
    const id = await awake({ hours: 10 });
    const capWatch = watch();
    await look(capWatch, reachedAt);
    await lift();
    await look(capWatch, reachedAt + GRACE_SECONDS * 1_000, reachedAt + HOUR_MS);
    assert.deepEqual([asked(), await statusOf(id)], [[], 'ready']);
    await setSubscription(api.db, org.orgId, { plan: METERED.id, machine_hour_limit: null, overage_enabled: false });
    await look(capWatch, reachedAt + HOUR_MS + 1, reachedAt + HOUR_MS + GRACE_SECONDS * 1_000);
    assert.deepEqual(asked(), []);
    await look(capWatch, reachedAt + HOUR_MS + 1 + GRACE_SECONDS * 1_000);
    assert.deepEqual(asked(), [`sleep ${id}`]);
  });
}

test('a raise during the stop keeps those sandboxes awake that were not stopped yet', async () => {
  const always = await awake({ hours: 10 }, { persistence_policy: 'always_on' });
  const sleeps = await awake();
  const { db, log, plans, lifecycle } = api.context;
  let isRaised = false;
  const capWatch = new CapWatch({
    context: { db, log, stopping: new AbortController().signal },
    plans,
    lifecycle: {
      ...lifecycle,
      // After the commit of the first.
      started: () => {
        isRaised = true;
      },
    },
    session: { isLeader: () => Promise.resolve(true) },
    graceSeconds: 0,
    readNow: async (of) => {
      if (isRaised) await sql`update subscription set machine_hour_limit = 20 where org_id = ${org.orgId}`.execute(of);
      return new Date(nowMs);
    },
  });
  await look(capWatch, reachedAt);
  assert.deepEqual([await statusOf(sleeps), await statusOf(always)], ['sleeping', 'ready']);
});

test('a new billing period starts without usage and without an old grace', async () => {
  const id = await awake({ hours: 10 });
  const capWatch = watch();
  await look(capWatch, reachedAt);
  const { endsAt } = periodAt(periodStartsAt, new Date(reachedAt));
  assert.ok(endsAt.getTime() > reachedAt + HOUR_MS);
  await look(capWatch, endsAt.getTime());
  assert.deepEqual(asked(), []);
  // The VM keeps running: it reaches the new period's warnings in turn, and the cap after ten
  // hours.
  await look(capWatch, endsAt.getTime() + 10 * HOUR_MS - 1);
  assert.deepEqual(await percents(), [80, 100, 80]);
  await look(capWatch, endsAt.getTime() + 10 * HOUR_MS, endsAt.getTime() + 10 * HOUR_MS + GRACE_SECONDS * 1_000 - 1);
  assert.deepEqual([asked(), await percents()], [[], [80, 100, 80, 100]]);
  await look(capWatch, endsAt.getTime() + 10 * HOUR_MS + GRACE_SECONDS * 1_000);
  assert.deepEqual(asked(), [`sleep ${id}`]);
});

test("a project at its cap is warned and stopped alone; the org's other projects continue", async () => {
  const other = await otherProject();
  await setProjectCap(2);
  const [inside, outside] = [await awake({ hours: 2 }), await awake({ hours: 1, projectId: other })];
  const capWatch = watch();
  await look(capWatch, reachedAt - 1);
  assert.deepEqual(
    (await warnings()).map(({ subject_id, details }) => [subject_id, details.percent]),
    [[org.projectId, 80]],
  );
  await look(capWatch, reachedAt, reachedAt + GRACE_SECONDS * 1_000);
  assert.deepEqual(
    (await warnings()).map(({ subject_id, details }) => [subject_id, details.percent]),
    [
      [org.projectId, 80],
      [org.projectId, 100],
    ],
  );
  assert.deepEqual([await statusOf(inside), await statusOf(outside)], ['sleeping', 'ready']);
  const { rows } = await sql<{ scope: string }>`
    select details ->> 'capScopeId' as scope
    from activity
    where sandbox_id = ${inside} and kind = 'sandbox_sleep_requested'`.execute(api.db);
  assert.deepEqual(rows, [{ scope: org.projectId }]);
});

test("at the org's cap all projects sleep, even one far below its own cap", async () => {
  const other = await otherProject();
  await setProjectCap(400, other);
  const [mine, theirs] = [await awake({ hours: 9 }), await awake({ hours: 1, projectId: other })];
  await look(watch(), reachedAt, reachedAt + GRACE_SECONDS * 1_000);
  assert.deepEqual([await statusOf(mine), await statusOf(theirs)], ['sleeping', 'sleeping']);
});

test("with overage an explicit org cap warns only; a project's cap still stops the project", async () => {
  await setGuardrails({ sandboxMachineHourLimit: 10, sandboxOverageEnabled: true });
  const id = await awake({ hours: 10 });
  const capWatch = watch();
  await look(capWatch, reachedAt, reachedAt + HOUR_MS);
  assert.deepEqual([await percents(), asked()], [[80, 100], []]);
  assert.match(
    (await warnings())[1]?.details.reason ?? '',
    /Overage is enabled: sandboxes continue beyond the cap, and the excess is metered\.$/,
  );
  await setProjectCap(10);
  await look(capWatch, reachedAt + HOUR_MS, reachedAt + HOUR_MS + GRACE_SECONDS * 1_000);
  assert.deepEqual(asked(), [`sleep ${id}`]);
});

test('disabling overage at a used-up cap warns before anything sleeps', async () => {
  await setGuardrails({ sandboxMachineHourLimit: 10, sandboxOverageEnabled: true });
  const id = await awake({ hours: 10 });
  const capWatch = watch();
  await look(capWatch, reachedAt);
  await setGuardrails({ sandboxOverageEnabled: false });
  await look(capWatch, reachedAt + 1, reachedAt + 2);
  assert.deepEqual(await percents(), [80, 100, 80, 100]);
  assert.match((await warnings()).at(-1)?.details.reason ?? '', /awake sandboxes go to sleep 60 s later/);
  await setGuardrails({ sandboxOverageEnabled: true });
  await look(capWatch, reachedAt + 3);
  await setGuardrails({ sandboxOverageEnabled: false });
  await look(capWatch, reachedAt + 4);
  assert.equal((await percents()).length, 4, 'each of the two is said once for a cap and period');
  await look(capWatch, reachedAt + 4 + GRACE_SECONDS * 1_000);
  assert.deepEqual(asked(), [`sleep ${id}`]);
});

test("a threshold reached before the leader's death is warned of by the next, even if none is awake", async () => {
  const id = await awake({ hours: 10 });
  await look(watch(), reachedAt - HOUR_MS);
  await sql`
    update usage_interval set during = tstzrange(lower(during), ${new Date(reachedAt)})
    where sandbox_id = ${id}`.execute(api.db);
  await api.db.updateTable('sandbox').set({ status: 'stopped', wakes_from: 'snapshot' }).where('id', '=', id).execute();
  await look(watch(), reachedAt + 1);
  assert.deepEqual(await percents(), [80, 100]);
});

test("a pass reads the org's usage in one statement, however many projects have a cap", async () => {
  await awake({ hours: 5 });
  for (let count = 0; count < 4; count += 1) {
    const projectId = await otherProject();
    await awake({ hours: 1, projectId });
    await setProjectCap(1_000, projectId);
  }
  const watched = openWatched(api.databaseUrl);
  try {
    const projectIds = (await api.db.selectFrom('project').select('id').where('org_id', '=', org.orgId).execute()).map(
      (row) => row.id,
    );
    const standings = await capUsagesAt(
      watched.db,
      api.context.plans,
      { orgId: org.orgId, projectIds },
      new Date(reachedAt),
    );
    assert.deepEqual(
      standings.map(({ usedMs }) => usedMs / HOUR_MS),
      [9, 1, 1, 1, 1],
    );
    assert.equal(watched.queries.filter(({ sql: text }) => text.includes('usage_total')).length, 1);
  } finally {
    await watched.db.destroy();
  }
});

test('without a cap, by plan or by overage, there are no warnings and no stops', async () => {
  await awake({ hours: 100 });
  const capWatch = watch();
  await setGuardrails({ sandboxOverageEnabled: true });
  await look(capWatch, reachedAt);
  await setSubscription(api.db, org.orgId, { plan: SELF_HOSTED_PLAN.id, overage_enabled: false });
  await look(capWatch, reachedAt + HOUR_MS, reachedAt + 2 * HOUR_MS);
  assert.deepEqual([await percents(), asked()], [[], []]);
});

test('a changed cap has its own thresholds, and a restored one does not warn again', async () => {
  await awake({ hours: 10 });
  const capWatch = watch();
  await look(capWatch, reachedAt);
  await setGuardrails({ sandboxMachineHourLimit: 12 });
  await look(capWatch, reachedAt + 1);
  await setGuardrails({ sandboxMachineHourLimit: null });
  await look(capWatch, reachedAt + 2);
  assert.deepEqual(
    (await warnings()).map(({ details }) => [details.capMachineHours, details.percent]),
    [
      [10, 80],
      [10, 100],
      [12, 80],
    ],
  );
});

test('a threshold reached by a VM that slept right after is warned of', async () => {
  const id = await awake({ hours: 10 });
  const capWatch = watch();
  await look(capWatch, reachedAt - HOUR_MS);
  await sql`
    update usage_interval set during = tstzrange(lower(during), ${new Date(reachedAt)})
    where sandbox_id = ${id}`.execute(api.db);
  await api.db.updateTable('sandbox').set({ status: 'stopped', wakes_from: 'snapshot' }).where('id', '=', id).execute();
  await look(capWatch, reachedAt + 500, reachedAt + 1_500);
  assert.deepEqual(await percents(), [80, 100]);
});

test('a sandbox that cannot be captured is retried after a minute and blocks no other', async () => {
  const failedAt = new Date(reachedAt + GRACE_SECONDS * 1_000);
  const failed = await awake(
    { hours: 10 },
    {
      status_reason_code: 'sleep_failed',
      status_reason_message: 'made so by a test',
      status_changed_at: failedAt,
    },
  );
  const [sleeps, always] = [await awake(), await awake({}, { persistence_policy: 'always_on' })];
  const capWatch = watch();
  await look(capWatch, reachedAt, failedAt.getTime() + SLEEP_AGAIN_AFTER_MS - 1);
  assert.deepEqual(asked(), [`sleep ${sleeps}`, `sleep ${always}`]);
  await look(capWatch, failedAt.getTime() + SLEEP_AGAIN_AFTER_MS);
  assert.equal(asked().at(-1), `sleep ${failed}`);
});

test('an org with an ended or unknown plan does not block the caps of others', async () => {
  await awake({ hours: 10 });
  const [ended, unknown] = [await api.makeOrg(), await api.makeOrg()];
  for (const other of [ended, unknown]) {
    await setSubscription(api.db, other.orgId, { machine_hour_limit: 1 });
    const { id } = await api.makeSandbox('ready', { org_id: other.orgId, project_id: other.projectId });
    await addRunning(api.db, other, id, new Date(reachedAt - 10 * HOUR_MS));
  }
  await sql`update subscription set status = 'canceled', canceled_at = now() where org_id = ${ended.orgId}`.execute(
    api.db,
  );
  await sql`update subscription set plan = 'gone' where org_id = ${unknown.orgId}`.execute(api.db);
  await look(watch(), reachedAt);
  assert.deepEqual(await percents(), [80, 100]);
});

test('a replica that is not the leader does nothing', async () => {
  await awake({ hours: 10 });
  await look(
    watch(() => false),
    reachedAt,
    reachedAt + HOUR_MS,
  );
  assert.deepEqual([await percents(), asked()], [[], []]);
});

test('two replicas that both believe to lead warn once and stop each sandbox once', async () => {
  const ids = [await awake({ hours: 10 }), ...(await Promise.all(Array.from({ length: 9 }, () => awake())))];
  const two = [watch(), watch()];
  for (const instant of [reachedAt, reachedAt + GRACE_SECONDS * 1_000]) {
    nowMs = instant;
    await Promise.all(two.map((capWatch) => capWatch.tick()));
  }
  assert.deepEqual(await percents(), [80, 100]);
  assert.deepEqual(asked().toSorted(), ids.map((id) => `sleep ${id}`).toSorted());
});

test('warnings are deleted long after the longest period', async () => {
  await addUsed(api.db, org, 9 * HOUR_MS);
  await awake({ hours: 1 });
  await look(watch(), reachedAt);
  const kept = api.db.selectFrom('usage_cap_warning').select('percent').where('org_id', '=', org.orgId);
  await sql`
    update usage_cap_warning set warned_at = now() - interval '401 days'
    where org_id = ${org.orgId} and percent = 80`.execute(api.db);
  const context = { db: api.db, stopping: new AbortController().signal };
  await purgeCapWarnings(context, { isLeader: () => Promise.resolve(true) });
  assert.equal((await kept.execute()).length, 1);
});
