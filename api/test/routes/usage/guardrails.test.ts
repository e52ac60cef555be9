// Machine-hour guardrails set by org admins: the spec's four rules, permissions, invalid input.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { role } from '@berth/contract/route/permissions.ts';
import { MOST_MACHINE_HOURS, SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';
import { startApi, type Answer, type TestApi, type TestSession } from '../../world/api.ts';

const METERED: Plan = { ...SELF_HOSTED_PLAN, id: 'metered', name: 'Metered', includedMachineHours: 100 };

let api: TestApi;
let admin: TestSession;
before(async () => {
  api = await startApi({ durable: false, plans: [METERED] });
  admin = await api.makeSession({ role: 'admin' });
});
after(() => api.close());
beforeEach(async () => {
  await setSubscription({ plan: METERED.id, status: 'active', machine_hour_limit: null, overage_enabled: false });
  await api.db.updateTable('project').set({ sandbox_machine_hour_limit: null }).execute();
  await api.db.deleteFrom('activity').execute();
});

async function setSubscription(changed: object): Promise<void> {
  await api.db.updateTable('subscription').set(changed).where('org_id', '=', api.orgId).execute();
}
const ofOrg = (body: unknown, token = admin.token): Promise<Answer> =>
  api.call('PATCH', `/v1/orgs/${api.orgId}/subscription/usage-guardrails`, { body, token });
const ofProject = (body: unknown, token = admin.token): Promise<Answer> =>
  api.call('PATCH', `/v1/orgs/${api.orgId}/projects/${api.projectId}/usage-guardrails`, { body, token });
const feed = () =>
  api.db.selectFrom('activity').select(['kind', 'subject_kind', 'subject_id', 'actor_user_id', 'details']).execute();

test("rule 1: without overage a null limit falls back to the plan's included hours", async () => {
  await ofOrg({ sandboxMachineHourLimit: 7, sandboxOverageEnabled: true });
  const { status, body } = await ofOrg({ sandboxMachineHourLimit: null, sandboxOverageEnabled: false });
  assert.equal(status, 200);
  assert.deepEqual(body.usageGuardrails, {
    includedMachineHours: 100,
    sandboxMachineHourLimit: 100,
    sandboxMachineHourLimitOverride: null,
    sandboxOverageEnabled: false,
  });
});

test('rule 2: with overage a null limit is no cap, even if the plan includes hours', async () => {
  assert.deepEqual((await ofOrg({ sandboxMachineHourLimit: null, sandboxOverageEnabled: true })).body.usageGuardrails, {
    includedMachineHours: 100,
    sandboxMachineHourLimit: null,
    sandboxMachineHourLimitOverride: null,
    sandboxOverageEnabled: true,
  });
});

test("a limit replaces the plan's included hours as the cap, in fractional hours, until changed", async () => {
  for (const limit of [0, 0.25, 40, 250, MOST_MACHINE_HOURS]) {
    const { usageGuardrails } = (await ofOrg({ sandboxMachineHourLimit: limit })).body;
    assert.deepEqual(
      [usageGuardrails.sandboxMachineHourLimit, usageGuardrails.sandboxMachineHourLimitOverride],
      [limit, limit],
    );
  }
  const { usageGuardrails } = (await ofOrg({ sandboxOverageEnabled: true })).body;
  assert.deepEqual(
    [usageGuardrails.sandboxMachineHourLimit, usageGuardrails.sandboxOverageEnabled],
    [MOST_MACHINE_HOURS, true],
  );
  assert.equal((await ofOrg({ sandboxMachineHourLimit: 5 })).body.usageGuardrails.sandboxOverageEnabled, true);
});

test('rule 4: null on a project removes its cap, as the project shows', async () => {
  const limitOfProject = async (): Promise<unknown> =>
    (await api.call('GET', `/v1/orgs/${api.orgId}/projects/${api.projectId}`)).body.project.sandboxMachineHourLimit;
  assert.deepEqual((await ofProject({ sandboxMachineHourLimit: 12.5 })).body, {
    usageGuardrails: { sandboxMachineHourLimit: 12.5 },
  });
  assert.equal(await limitOfProject(), 12.5);
  assert.deepEqual((await ofProject({ sandboxMachineHourLimit: null })).body, {
    usageGuardrails: { sandboxMachineHourLimit: null },
  });
  assert.equal(await limitOfProject(), null);
});

test('a change adds a feed row with old and new values; a change without effect adds none', async () => {
  await ofOrg({ sandboxMachineHourLimit: 7, sandboxOverageEnabled: false });
  await ofOrg({ sandboxMachineHourLimit: 7 });
  await ofProject({ sandboxMachineHourLimit: 3 });
  await ofProject({ sandboxMachineHourLimit: 3 });
  const from = { kind: 'usage_guardrails_updated', actor_user_id: admin.userId };
  const changes = (to: number) => ({ changes: { sandboxMachineHourLimit: { from: null, to } } });
  assert.deepEqual(await feed(), [
    { ...from, subject_kind: 'org', subject_id: api.orgId, details: changes(7) },
    { ...from, subject_kind: 'project', subject_id: api.projectId, details: changes(3) },
  ]);
});

test("only org admins in a sign-in session can set guardrails, not an owner's key", async () => {
  for (const name of role.options) {
    const { token } = await api.makeSession({ role: name });
    const expected = name === 'owner' || name === 'admin' ? 200 : 403;
    assert.equal((await ofOrg({ sandboxOverageEnabled: false }, token)).status, expected, name);
    assert.equal((await ofProject({ sandboxMachineHourLimit: null }, token)).status, expected, name);
  }
  for (const call of [ofOrg, ofProject]) {
    const answer = await call({ sandboxMachineHourLimit: null }, api.token);
    assert.deepEqual([answer.status, answer.body.error.code], [403, 'auth_kind_not_allowed']);
  }
});

for (const [what, body, told] of [
  [
    'a limit below nothing',
    { sandboxMachineHourLimit: -0.1 },
    /body\.sandboxMachineHourLimit.*>= ?0|body\.sandboxMachineHourLimit.*at least 0/,
  ],
  [
    'a limit beyond all',
    { sandboxMachineHourLimit: MOST_MACHINE_HOURS + 1 },
    /body\.sandboxMachineHourLimit.*100000000/,
  ],
  ['a limit that is text', { sandboxMachineHourLimit: '7' }, /body\.sandboxMachineHourLimit.*number/],
  ['overage that is no boolean', { sandboxOverageEnabled: 'yes' }, /body\.sandboxOverageEnabled.*boolean/],
  ['nothing to set', {}, /must have sandboxMachineHourLimit, sandboxOverageEnabled or both/],
] as const) {
  test(`guardrails of an org with ${what} are 400 and name the allowed values`, async () => {
    const answer = await ofOrg(body);
    assert.deepEqual([answer.status, answer.body.error.code], [400, 'invalid_request']);
    assert.match(answer.body.error.message, told);
    assert.deepEqual(await feed(), []);
  });
}

test("a project's guardrails require a cap and have no overage field", async () => {
  assert.match((await ofProject({})).body.error.message, /body\.sandboxMachineHourLimit/);
  const refused = await ofProject({ sandboxMachineHourLimit: 1, sandboxOverageEnabled: true });
  assert.match(refused.body.error.message, /body\.sandboxOverageEnabled: unknown field/);
});

test('setting guardrails without an active plan is 402 no_active_plan', async () => {
  await setSubscription({ status: 'canceled', canceled_at: new Date() });
  const answer = await ofOrg({ sandboxMachineHourLimit: 1 });
  assert.deepEqual([answer.status, answer.body.error.code], [402, 'no_active_plan']);
  await setSubscription({ status: 'active', canceled_at: null });
});

test('concurrent changes each leave one of their values, and the feed records them in sequence', async () => {
  const values = Array.from({ length: 12 }, (_, index) => index + 1);
  const answers = await Promise.all(values.map((value) => ofOrg({ sandboxMachineHourLimit: value })));
  assert.ok(answers.every(({ status }) => status === 200));
  const rows = await api.db.selectFrom('activity').select('details').orderBy('seq').execute();
  let was: unknown = null;
  for (const { details } of rows) {
    const { from, to } = (details as { changes: { sandboxMachineHourLimit: { from: unknown; to: unknown } } }).changes
      .sandboxMachineHourLimit;
    assert.equal(from, was);
    was = to;
  }
  const { machine_hour_limit: limit } = await api.db
    .selectFrom('subscription')
    .selectAll()
    .where('org_id', '=', api.orgId)
    .executeTakeFirstOrThrow();
  assert.deepEqual([rows.length, limit], [values.length, was]);
});
