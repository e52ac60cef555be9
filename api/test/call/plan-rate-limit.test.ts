// Rate limit of an org by its plan, which is cached, on a clock that only tests move.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { plan, SELF_HOSTED_PLAN } from '@berth/contract/billing/plans.ts';
import { FULL_AFTER_MS } from '../../src/rules/access/token-bucket.ts';
import { startApi, type Answer, type TestApi } from '../world/api.ts';
import { StatementRecorder } from '../world/statements.ts';

const CONFIGURED = 4;
const PLAN = plan.parse({ ...SELF_HOSTED_PLAN, id: 'fast', name: 'Fast', requestsPerMinute: 10 });

const recorder = new StatementRecorder();
let nowMs = 1_000_000;
let api: TestApi;
before(async () => {
  const settings = { orgRequestsPerMinute: CONFIGURED };
  api = await startApi({ durable: false, settings, plans: [PLAN], now: () => nowMs });
});
after(() => api.close());
// All buckets refill, and cached plans expire.
beforeEach(() => (nowMs += FULL_AFTER_MS));

interface Org {
  orgId: string;
  token: string;
}
const orgWith = async (planId: string): Promise<Org> => {
  const { orgId, token } = await api.makeOrg();
  await choose(orgId, { plan: planId });
  return { orgId, token };
};
const choose = async (orgId: string, changes: { plan?: string; status?: 'canceled' }): Promise<void> =>
  void (await api.db.updateTable('subscription').set(changes).where('org_id', '=', orgId).execute());
const projects = ({ orgId, token }: Org): Promise<Answer> => api.call('GET', `/v1/orgs/${orgId}/projects`, { token });

/** Exactly `allowed` concurrent requests succeed; returns the messages of the others. */
async function assertAllowed(org: Org, allowed: number): Promise<string[]> {
  const answers = await Promise.all(Array.from({ length: allowed + 5 }, () => projects(org)));
  const succeeded = answers.filter(({ status }) => status === 200);
  assert.deepEqual([succeeded.length, answers.length], [allowed, allowed + 5]);
  return answers.flatMap(({ status, body }) => (status === 429 ? [body.error.message] : []));
}

test("an org's plan sets its requests per minute and is named; other orgs have the configured limit", async () => {
  const [fast, usual] = [await orgWith(PLAN.id), await orgWith(SELF_HOSTED_PLAN.id)];
  const [planned, configured] = [await assertAllowed(fast, 10), await assertAllowed(usual, CONFIGURED)];
  assert.equal(
    planned[0],
    'too many requests of this org: the limit is 10 per minute for all its credentials ' +
      '(of the plan Fast (fast)); retry in 6 s',
  );
  assert.match(configured[0] ?? '', /the limit is 4 per minute .*\(BERTH_ORG_REQUESTS_PER_MINUTE\)/);
});

test('a changed plan applies after a minute, and a canceled one no longer', async () => {
  const org = await orgWith(SELF_HOSTED_PLAN.id);
  await assertAllowed(org, CONFIGURED);
  await choose(org.orgId, { plan: PLAN.id });
  nowMs += FULL_AFTER_MS;
  await assertAllowed(org, 10);
  await choose(org.orgId, { status: 'canceled' });
  nowMs += FULL_AFTER_MS;
  await assertAllowed(org, CONFIGURED);
});

test('the plan of an org is read once a minute, not with each request', async () => {
  const org = await orgWith(PLAN.id);
  const { statements } = await recorder.during(async () => {
    for (let call = 0; call < 10; call += 1) assert.equal((await projects(org)).status, 200);
  });
  const reads = statements.filter((text) => text.includes('from "subscription"'));
  assert.equal(reads.length, 1, reads.join('\n'));
});
