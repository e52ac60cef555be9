// Retention by plan: whose entries are deleted, and when whole partitions are.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SELF_HOSTED_PLAN } from '@berth/contract/billing/plans.ts';
import { longestRetention, plansByRetention } from '../../../src/rules/activity/retention.ts';
import { planCatalogueOf } from '../../../src/rules/billing/plan-catalogue.ts';

const plan = (id: string, activityRetentionDays: number | null) => ({ ...SELF_HOSTED_PLAN, id, activityRetentionDays });
const PLANS = planCatalogueOf([plan('week', 7), plan('quarter', 90), plan('forever', null)]);

test('plans are grouped by retention; a plan without one deletes nothing', () => {
  assert.deepEqual(plansByRetention(PLANS), [
    { days: 90, plans: ['self-hosted', 'quarter'] },
    { days: 7, plans: ['week'] },
  ]);
});

test('the longest retention is that of the plans in use; an unknown or unlimited plan keeps all', () => {
  assert.equal(longestRetention(PLANS, ['week']), 7);
  assert.equal(longestRetention(PLANS, ['week', 'self-hosted']), 90);
  for (const keeps of ['forever', 'removed-from-the-catalogue', null])
    assert.equal(longestRetention(PLANS, ['week', keeps]), null);
  assert.equal(longestRetention(PLANS, []), null);
});
