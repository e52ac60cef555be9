// Creates against the plan in force, over HTTP with a real database: every refusal, and the cap
// under concurrent creates.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { MACHINE_SIZES } from '@berth/contract/sandboxes/machine-sizes.ts';
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';
import { SANDBOX_STATES, sandboxStatus } from '@berth/contract/sandboxes/state.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';

const STARTER: Plan = {
  ...SELF_HOSTED_PLAN,
  id: 'starter',
  name: 'Starter',
  tier: 'standard',
  concurrentSandboxes: 23,
  largestSize: 'medium',
  ephemeralSessionSeconds: 3_600,
};
const PARALLEL = 200;

let api: TestApi;
let externalId: string;
before(async () => {
  api = await startApi({ durable: false, plans: [STARTER] });
  const made = await api.call('POST', `/v1/orgs/${api.orgId}/projects`, { body: { useCase: 'external' } });
  externalId = made.body.project.id;
});
after(() => api.close());
beforeEach(async () => {
  await api.db.deleteFrom('sandbox').execute();
  await setPlan('starter');
});

async function setPlan(plan: string, status: 'active' | 'canceled' = 'active'): Promise<void> {
  await api.db.deleteFrom('subscription').where('org_id', '=', api.orgId).execute();
  await api.db.insertInto('subscription').values({ org_id: api.orgId, plan, status }).execute();
}
const create = (body: object = {}): Promise<Answer> =>
  api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, {
    body: { agent: 'agent_one', projectId: api.projectId, ...body },
    headers: { prefer: 'respond-async' },
  });
const createEphemeral = (ttlSeconds: number): Promise<Answer> =>
  create({ projectId: externalId, mode: 'ephemeral', ttlSeconds });
const countRows = async (): Promise<number> => (await api.db.selectFrom('sandbox').select('id').execute()).length;

test('a new org has the self-hosted plan, which has no caps', async () => {
  await setPlan('self-hosted');
  assert.equal((await create({ machineSize: 'xlarge' })).status, 201);
  assert.equal((await createEphemeral(86_400)).status, 201);
  const other = await api.makeOrg();
  const plans = await api.db.selectFrom('subscription').select(['org_id', 'plan', 'status']).execute();
  assert.deepEqual(
    plans.find((row) => row.org_id === other.orgId),
    { org_id: other.orgId, plan: 'self-hosted', status: 'active' },
  );
});

test(`${PARALLEL} concurrent creates reach exactly the plan's cap, the others are 409 with the limit`, async () => {
  const answers = await Promise.all(Array.from({ length: PARALLEL }, () => create()));
  const refused = answers.filter(({ status }) => status !== 201);
  assert.equal(answers.length - refused.length, STARTER.concurrentSandboxes);
  for (const { status, body } of refused) {
    assert.equal(status, 409);
    assert.equal(body.error.code, 'concurrent_sandbox_limit');
    assert.match(body.error.message, /^the plan Starter \(starter\) allows 23 sandboxes awake/);
  }
  assert.equal(await countRows(), STARTER.concurrentSandboxes);
});

test('sandboxes of other orgs, asleep, failed or being destroyed do not count towards the cap', async () => {
  const other = await api.makeOrg();
  const elsewhere = { org_id: other.orgId, project_id: other.projectId };
  for (let index = 0; index < 23; index += 1) await api.makeSandbox('ready', elsewhere);
  const counted = sandboxStatus.options.filter((status) => SANDBOX_STATES[status].concurrent);
  const others = sandboxStatus.options.filter((status) => !SANDBOX_STATES[status].concurrent);
  for (let index = 0; index < 22; index += 1) await api.makeSandbox(counted[index % counted.length] ?? 'ready');
  for (const status of others) await api.makeSandbox(status);
  assert.equal((await create()).status, 201);
  assert.equal((await create()).body.error.code, 'concurrent_sandbox_limit');
});

test("a size above the plan's largest is 409 naming the limit, whether requested or from a profile", async () => {
  for (const body of [{ machineSize: 'large' }, { profile: 'repo-large' }]) {
    const answer = await create(body);
    assert.equal(answer.status, 409);
    assert.equal(answer.body.error.code, 'plan_limit');
    assert.match(
      answer.body.error.message,
      /the plan Starter \(starter\) allows sandboxes up to the machine size medium, which has 2 vCPU/,
    );
  }
  const allowed = await create({ profile: 'repo-large', machineSize: 'medium' });
  assert.equal(allowed.body.sandbox.allocated_vcpu, MACHINE_SIZES.medium.vcpu);
});

test("a time to live above the plan's session cap is 409 naming the limit", async () => {
  const answer = await createEphemeral(3_601);
  assert.equal(answer.status, 409);
  assert.equal(answer.body.error.code, 'plan_limit');
  assert.match(answer.body.error.message, /allows ephemeral sandboxes up to 3600 s; body\.ttlSeconds is 3601$/);
  assert.equal((await createEphemeral(3_600)).status, 201);
});

for (const [what, arrange] of [
  ['no plan', () => api.db.deleteFrom('subscription').where('org_id', '=', api.orgId).execute()],
  ['a plan that has ended', () => setPlan('starter', 'canceled')],
  ['a plan that the catalogue does not know', () => setPlan('gone')],
] as const) {
  test(`a create in an org with ${what} is 402 no_active_plan and leaves nothing behind`, async () => {
    await arrange();
    const answer = await create();
    assert.equal(answer.status, 402);
    assert.equal(answer.body.error.code, 'no_active_plan');
    assert.equal(await countRows(), 0);
  });
}

test('an ephemeral sandbox shows its time to live and expiry from its create, and never idles out', async () => {
  const { sandbox } = (await createEphemeral(600)).body;
  assert.equal(sandbox.mode, 'ephemeral');
  assert.equal(sandbox.ttlSeconds, 600);
  assert.equal(Date.parse(sandbox.expiresAt) - Date.parse(sandbox.createdAt), 600_000);
  assert.equal(sandbox.persistencePolicy, 'always_on');
  const persistent = (await create()).body.sandbox;
  assert.deepEqual([persistent.mode, persistent.ttlSeconds, persistent.expiresAt], ['persistent', null, null]);
});

test('an ephemeral sandbox in a project with another use case is 400 ephemeral_not_allowed', async () => {
  const answer = await create({ mode: 'ephemeral', ttlSeconds: 60 });
  assert.equal(answer.status, 400);
  assert.equal(answer.body.error.code, 'ephemeral_not_allowed');
  assert.match(answer.body.error.message, /useCase is "external"; this project's is "internal"$/);
});
