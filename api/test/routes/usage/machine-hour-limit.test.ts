// Creates and wakes against machine-hour caps: to the millisecond, by org and project, and
// concurrently on two API instances.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';
import { newId } from '../../../src/store/database/ids.ts';
import { insertProject } from '../../../src/store/orgs/projects.ts';
import { startApi, type Answer, type TestApi, type TestOrg } from '../../world/api.ts';
import { addRunning, addUsed, HOUR_MS, setSubscription } from '../../world/machine-time.ts';
import { startInstance, type Instance } from '../../sign-in/client.ts';
import { deadlineOf, untilTrue } from '../../../../os/test/until.ts';

const METERED: Plan = { ...SELF_HOSTED_PLAN, id: 'metered', name: 'Metered', includedMachineHours: 10 };

let api: TestApi;
/** Another instance of the API on the same database. */
let second: Instance;
/** New org for each test, as closed intervals cannot be deleted. */
let org: TestOrg;
let ownerToken: string;
before(async () => {
  api = await startApi({ durable: false, plans: [METERED] });
  second = await startInstance(api);
});
after(async () => {
  await second.close();
  await api.close();
});
beforeEach(async () => {
  org = await api.makeOrg();
  const session = await api.makeSession({ role: null });
  await api.db.insertInto('membership').values({ org_id: org.orgId, user_id: session.userId, role: 'owner' }).execute();
  ownerToken = session.token;
  await setSubscription(api.db, org.orgId, { plan: METERED.id });
  api.steps.length = 0;
});

const create = (projectId = org.projectId, headers: Record<string, string> = {}): Promise<Answer> =>
  api.call('POST', `/v1/orgs/${org.orgId}/sandboxes`, {
    token: org.token,
    body: { agent: 'agent_one', projectId },
    headers: { prefer: 'respond-async', ...headers },
  });
const wake = (id: string): Promise<Answer> =>
  api.call('POST', `/v1/sandboxes/${id}/wake`, { token: org.token, headers: { prefer: 'respond-async' } });
const sandboxIn = (status: 'stopped' | 'ready', projectId = org.projectId) =>
  api.makeSandbox(status, { org_id: org.orgId, project_id: projectId });
const setGuardrails = (body: object): Promise<Answer> =>
  api.call('PATCH', `/v1/orgs/${org.orgId}/subscription/usage-guardrails`, { body, token: ownerToken });
const setProjectCap = (limit: number | null, projectId = org.projectId): Promise<Answer> =>
  api.call('PATCH', `/v1/orgs/${org.orgId}/projects/${projectId}/usage-guardrails`, {
    body: { sandboxMachineHourLimit: limit },
    token: ownerToken,
  });
const countSandboxes = async (): Promise<number> =>
  (await api.db.selectFrom('sandbox').select('id').where('org_id', '=', org.orgId).execute()).length;
const statusOf = async (id: string): Promise<string> =>
  (await api.db.selectFrom('sandbox').select('status').where('id', '=', id).executeTakeFirstOrThrow()).status;

function assertAtCap(answer: Answer, told: RegExp): void {
  assert.deepEqual([answer.status, answer.body.error?.code], [409, 'machine_hour_limit'], JSON.stringify(answer.body));
  assert.match(answer.body.error.message, told);
}
const OF_ORG =
  /^the cap of the org org_\w+ is 10 machine hours .* PATCH \/v1\/orgs\/org_\w+\/subscription\/usage-guardrails /;

test('a millisecond below the cap create and wake succeed; at the cap both are 409 and leave nothing', async () => {
  const [first, other] = [await sandboxIn('stopped'), await sandboxIn('stopped')];
  await addUsed(api.db, org, 10 * HOUR_MS - 1);
  assert.equal((await create()).status, 201);
  assert.equal((await wake(first.id)).body.sandbox.status, 'waking');
  const present = await countSandboxes();
  api.steps.length = 0;
  await addUsed(api.db, org, 1);
  assertAtCap(await create(org.projectId, { 'idempotency-key': 'again' }), OF_ORG);
  assertAtCap(await wake(other.id), OF_ORG);
  assert.deepEqual([await countSandboxes(), await statusOf(other.id), api.steps], [present, 'stopped', []]);
  const keys = await api.db.selectFrom('idempotency_key').select('key').where('org_id', '=', org.orgId).execute();
  assert.deepEqual(keys, []);
});

test('running sandboxes of all projects count up to the current instant', async () => {
  const { id } = await sandboxIn('ready');
  await addRunning(api.db, org, id, new Date(Date.now() - 10 * HOUR_MS));
  assertAtCap(await create(), OF_ORG);
});

test('usage of earlier periods and of other orgs does not count', async () => {
  const { periodStartsAt } = await setSubscription(api.db, org.orgId);
  // Half of it precedes the period.
  await addUsed(api.db, org, 12 * HOUR_MS, new Date(periodStartsAt.getTime() + 6 * HOUR_MS));
  await addUsed(api.db, await api.makeOrg(), 100 * HOUR_MS);
  assert.equal((await create()).status, 201);
  await addUsed(api.db, org, 4 * HOUR_MS);
  assertAtCap(await create(), OF_ORG);
});

test('usage of a deleted project and its sandboxes still counts', async () => {
  const made = await insertProject(api.db, {
    id: newId('project'),
    org_id: org.orgId,
    name: 'gone',
    use_case: 'internal',
    created_by: org.userId,
  });
  await addUsed(api.db, { orgId: org.orgId, projectId: made.id }, 10 * HOUR_MS);
  await api.db.updateTable('project').set({ deleted_at: new Date() }).where('id', '=', made.id).execute();
  assertAtCap(await create(), OF_ORG);
});

test('raising the cap or enabling overage admits the next create and wake; reverting refuses them', async () => {
  const { id } = await sandboxIn('stopped');
  await addUsed(api.db, org, 11 * HOUR_MS);
  assertAtCap(await create(), OF_ORG);
  await setGuardrails({ sandboxMachineHourLimit: 12 });
  assert.equal((await create()).status, 201);
  await setGuardrails({ sandboxMachineHourLimit: 11 });
  assertAtCap(await create(), /is 11 machine hours/);
  // With overage even an explicit limit blocks nothing.
  await setGuardrails({ sandboxOverageEnabled: true });
  assert.equal((await create()).status, 201);
  await setGuardrails({ sandboxMachineHourLimit: null });
  assert.equal((await wake(id)).status, 200);
  await setGuardrails({ sandboxOverageEnabled: false });
  assertAtCap(await create(), OF_ORG);
});

test("a project's cap blocks that project only, is named, and holds despite the org's overage", async () => {
  const other = await insertProject(api.db, {
    id: newId('project'),
    org_id: org.orgId,
    name: 'other',
    use_case: 'internal',
    created_by: org.userId,
  });
  const asleep = await sandboxIn('stopped');
  await setProjectCap(2);
  await addUsed(api.db, org, 2 * HOUR_MS - 1);
  assert.equal((await create()).status, 201);
  await addUsed(api.db, org, 1);
  const ofProject = new RegExp(
    `^the cap of the project ${org.projectId} is 2 machine hours ` +
      `.*/projects/${org.projectId}/usage-guardrails .*null\\.$`,
  );
  for (const overage of [false, true]) {
    await setGuardrails({ sandboxOverageEnabled: overage });
    assertAtCap(await create(), ofProject);
    assertAtCap(await wake(asleep.id), ofProject);
    assert.equal((await create(other.id)).status, 201);
  }
  await setProjectCap(null);
  assert.equal((await create()).status, 201);
});

test("the org's cap blocks a project even if its own cap is not reached", async () => {
  const other = await insertProject(api.db, {
    id: newId('project'),
    org_id: org.orgId,
    name: 'other',
    use_case: 'internal',
    created_by: org.userId,
  });
  await setProjectCap(400);
  await addUsed(api.db, { orgId: org.orgId, projectId: other.id }, 10 * HOUR_MS);
  assertAtCap(await create(), OF_ORG);
});

test('at the cap a command cannot wake its sandbox (409) but runs in an awake one', async () => {
  let ran = 0;
  api.front.exec = () => {
    ran += 1;
    return Promise.resolve({ exitCode: 0, stdout: '', stderr: '', truncated: false, timedOut: false });
  };
  await api.db.updateTable('project').set({ wake_on_use: true }).where('id', '=', org.projectId).execute();
  const [asleep, awake] = [await sandboxIn('stopped'), await sandboxIn('ready')];
  await addUsed(api.db, org, 10 * HOUR_MS);
  const exec = (id: string): Promise<Answer> =>
    api.call('POST', `/v1/sandboxes/${id}/exec`, { token: org.token, body: { command: 'true' } });
  assertAtCap(await exec(asleep.id), OF_ORG);
  assertAtCap(await api.call('GET', `/v1/sandboxes/${asleep.id}/file?path=a`, { token: org.token }), OF_ORG);
  assertAtCap(await api.call('GET', `/v1/sandboxes/${asleep.id}/tunnel`, { token: org.token }), OF_ORG);
  assert.deepEqual([ran, await statusOf(asleep.id)], [0, 'stopped']);
  assert.equal((await exec(awake.id)).status, 200);
  assert.equal(ran, 1);
});

test('a create from before the cap is replayed by its key', async () => {
  const made = await create(org.projectId, { 'idempotency-key': 'same' });
  assert.equal(made.status, 201);
  await addUsed(api.db, org, 10 * HOUR_MS);
  const again = await create(org.projectId, { 'idempotency-key': 'same' });
  assert.deepEqual([again.status, again.body.sandbox.id], [201, made.body.sandbox.id]);
});

test('at the cap a sandbox can sleep, be resized, read and destroyed', async () => {
  const { id } = await sandboxIn('ready');
  await addUsed(api.db, org, 10 * HOUR_MS);
  for (const [verb, body] of [
    ['resize', { memoryGb: 2 }],
    ['sleep', undefined],
    ['destroy', undefined],
  ] as const) {
    const answer = await api.call('POST', `/v1/sandboxes/${id}/${verb}`, {
      token: org.token,
      headers: { prefer: 'respond-async' },
      ...(body === undefined ? {} : { body }),
    });
    assert.equal(answer.status, 200, `${verb}: ${JSON.stringify(answer.body)}`);
  }
});

test('the self-hosted plan has no cap, but an admin can set one', async () => {
  await setSubscription(api.db, org.orgId, { plan: SELF_HOSTED_PLAN.id });
  await addUsed(api.db, org, 40 * HOUR_MS);
  await addUsed(api.db, org, 40 * HOUR_MS);
  assert.equal((await create()).status, 201);
  await setGuardrails({ sandboxMachineHourLimit: 80 });
  assertAtCap(await create(), /is 80 machine hours/);
});

/** Both instances in turn, each with its own connections. */
async function createAt(index: number): Promise<{ status: number; code: string | undefined }> {
  const { url } = index % 2 === 0 ? api : second;
  const answer = await fetch(`${url}/v1/orgs/${org.orgId}/sandboxes`, {
    method: 'POST',
    headers: { authorization: `Bearer ${org.token}`, 'content-type': 'application/json', prefer: 'respond-async' },
    body: JSON.stringify({ agent: 'agent_one', projectId: org.projectId }),
  });
  const body = (await answer.json()) as { error?: { code: string } };
  return { status: answer.status, code: body.error?.code };
}

test('of 100 concurrent creates on two instances none passes at the cap, and all pass below it', async () => {
  await addUsed(api.db, org, 10 * HOUR_MS - 1);
  const below = await Promise.all(Array.from({ length: 20 }, (_, index) => createAt(index)));
  assert.ok(below.every(({ status }) => status === 201));
  await addUsed(api.db, org, 1);
  const answers = await Promise.all(Array.from({ length: 100 }, (_, index) => createAt(index)));
  for (const answer of answers) assert.deepEqual(answer, { status: 409, code: 'machine_hour_limit' });
  assert.equal(await countSandboxes(), 20);
});

for (const [whose, lower] of [
  ['the org', () => setGuardrails({ sandboxMachineHourLimit: 5 })],
  ['the project', () => setProjectCap(5)],
] as const) {
  test(`a lower cap of ${whose} applies at once: no create that begins after its response passes`, async () => {
    await addUsed(api.db, org, 5 * HOUR_MS);
    let isLowered = false;
    const stopping = new AbortController();
    const counted = { made: 0, refused: 0, late: 0 };
    const client = async (index: number): Promise<void> => {
      while (!stopping.signal.aborted) {
        const beganAfter = isLowered;
        const { status, code } = await createAt(index);
        if (status !== 201) assert.equal(code, 'machine_hour_limit');
        counted[status === 201 ? 'made' : 'refused'] += 1;
        if (beganAfter && status === 201) counted.late += 1;
      }
    };
    const clients = Array.from({ length: 8 }, (_, index) => client(index));
    try {
      await untilTrue('creates before', () => counted.made >= 20);
      const answer = await lower();
      isLowered = true;
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      await untilTrue('creates after', () => counted.refused >= 20);
    } finally {
      stopping.abort();
      await Promise.all(clients);
    }
    assert.equal(counted.late, 0);
    assert.equal(await countSandboxes(), counted.made);
  });
}

test('a cap reached during creates on two instances blocks all creates that begin after it', async () => {
  const { id } = await sandboxIn('ready');
  // A running VM uses up the rest within seconds.
  const reachedAt = new Date(Date.now() + 3_000);
  await addRunning(api.db, org, id, new Date(reachedAt.getTime() - 10 * HOUR_MS));
  let refused = 0;
  const client = async (index: number): Promise<void> => {
    for (const deadline = Date.now() + deadlineOf(30_000); refused < 20;) {
      assert.ok(Date.now() < deadline);
      if ((await createAt(index)).status === 409) refused += 1;
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, index) => client(index)));
  const made = await api.db
    .selectFrom('sandbox')
    .select('created_at')
    .where('org_id', '=', org.orgId)
    .where('id', '<>', id)
    .execute();
  assert.ok(made.length > 0, 'some came before');
  for (const { created_at: createdAt } of made)
    assert.ok(createdAt < reachedAt, `${createdAt.toISOString()} is after ${reachedAt.toISOString()}`);
});
