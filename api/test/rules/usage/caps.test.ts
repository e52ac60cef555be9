// Machine-hour caps: which applies, when it is reached, its messages, and the order of stops.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MOST_MACHINE_HOURS } from '@berth/contract/billing/plans.ts';
import fc from 'fast-check';
import {
  capMs,
  describeWarning,
  effectiveCap,
  effectiveProjectCap,
  enforcedCap,
  inOrderOfSleep,
  isAtCap,
  requireBelowCap,
  SLEEP_AGAIN_AFTER_MS,
  warningsDue,
  type CapUsage,
  type OrgGuardrails,
} from '../../../src/rules/usage/caps.ts';

const hours = fc.double({ min: 0, max: MOST_MACHINE_HOURS, noNaN: true });
const maybeHours = fc.option(hours);
const guardrails: fc.Arbitrary<OrgGuardrails> = fc.record({
  plan: fc.record({ includedMachineHours: maybeHours }),
  limit: maybeHours,
  overageEnabled: fc.boolean(),
});
const org = (includedMachineHours: number | null, limit: number | null, overageEnabled: boolean): OrgGuardrails => ({
  plan: { includedMachineHours },
  limit,
  overageEnabled,
});

const CASES: [what: string, of: OrgGuardrails, effective: number | null, enforced: number | null][] = [
  ['rule 1: null with overage off is what the plan includes', org(100, null, false), 100, 100],
  ['rule 1: null with overage off under a plan without a cap is no cap', org(null, null, false), null, null],
  ['rule 2: null with overage on is no cap, whatever the plan includes', org(100, null, true), null, null],
  ['a limit below what the plan includes is the cap', org(100, 40, false), 40, 40],
  ['a limit above what the plan includes is the cap', org(100, 400, false), 400, 400],
  ['a limit under a plan without a cap is the cap', org(null, 40, false), 40, 40],
  ['a limit of 0 is a cap, and not none', org(100, 0, false), 0, 0],
  ['a limit with overage on is shown and warned of, and stops nobody', org(100, 40, true), 40, null],
];

for (const [what, of, effective, enforced] of CASES)
  test(what, () => assert.deepEqual([effectiveCap(of), enforcedCap(of)], [effective, enforced]));

test("rule 3: a project has its own cap within the org's; rule 4: null means none", () => {
  assert.equal(effectiveProjectCap(10, org(100, null, false)), 10);
  assert.equal(effectiveProjectCap(400, org(100, null, false)), 100);
  assert.equal(effectiveProjectCap(400, org(null, null, false)), 400);
  assert.equal(effectiveProjectCap(400, org(100, null, true)), 400, 'overage of the org is no overage of a project');
  assert.equal(effectiveProjectCap(0, org(100, null, false)), 0);
  assert.equal(effectiveProjectCap(null, org(100, null, false)), null);
});

test('a limit is the cap, overage enforces none, and a project never exceeds itself or its org', () => {
  fc.assert(
    fc.property(guardrails, maybeHours, (of, projectLimit) => {
      const [effective, enforced] = [effectiveCap(of), enforcedCap(of)];
      if (of.limit !== null) assert.equal(effective, of.limit);
      else assert.equal(effective, of.overageEnabled ? null : of.plan.includedMachineHours);
      assert.equal(enforced, of.overageEnabled ? null : effective);
      const project = effectiveProjectCap(projectLimit, of);
      assert.equal(project === null, projectLimit === null);
      if (project === null || projectLimit === null) return;
      assert.equal(project, Math.min(projectLimit, enforced ?? Infinity));
    }),
  );
});

test('a cap is reached exactly at its last millisecond, a wider cap never before a narrower one', () => {
  fc.assert(
    fc.property(hours, hours, (one, other) => {
      const last = capMs(one);
      assert.ok(isAtCap(last, one) && isAtCap(last + 1, one));
      assert.ok(last === 0 || !isAtCap(last - 1, one));
      const [narrow, wide] = one < other ? [one, other] : [other, one];
      assert.ok(capMs(narrow) <= capMs(wide));
    }),
  );
  assert.equal(capMs(0.7), 2_520_000);
  assert.equal(capMs(1 / 3), 1_200_000);
  assert.ok(isAtCap(0, 0), 'nothing may be used of nothing');
});

test('80 % and 100 % warn from the millisecond of their use, in order', () => {
  assert.deepEqual(warningsDue(8 * 3_600_000 - 1, 10), []);
  assert.deepEqual(warningsDue(8 * 3_600_000, 10), [80]);
  assert.deepEqual(warningsDue(10 * 3_600_000 - 1, 10), [80]);
  assert.deepEqual(warningsDue(10 * 3_600_000, 10), [80, 100]);
  fc.assert(
    fc.property(hours, fc.nat({ max: 1_000_000_000 }), (cap, used) => {
      const due = warningsDue(used, cap);
      assert.equal(due.includes(100), isAtCap(used, cap));
      assert.ok(!due.includes(100) || due.includes(80));
      // Warnings never decrease with usage.
      assert.ok(due.length <= warningsDue(used + 1, cap).length);
    }),
  );
});

const period = { startsAt: new Date('2026-01-31T00:00:00Z'), endsAt: new Date('2026-02-28T00:00:00Z') };
const ofOrg: CapUsage = { scope: { kind: 'org', orgId: 'org_1' }, cap: 10, usedMs: 36_000_000, period };
const ofProject: CapUsage = { ...ofOrg, scope: { kind: 'project', orgId: 'org_1', projectId: 'prj_1' }, cap: 0.5 };

test("a refusal names the cap, its owner, the period's end and how to raise it", () => {
  assert.doesNotThrow(() => requireBelowCap({ ...ofOrg, usedMs: 35_999_999 }));
  const refusalOf = (standing: CapUsage): { code: string; message: string } => {
    try {
      requireBelowCap(standing);
    } catch (error) {
      return error as { code: string; message: string };
    }
    return assert.fail('it is not refused');
  };
  const refused = refusalOf(ofOrg);
  assert.equal(refused.code, 'machine_hour_limit');
  assert.match(refused.message, /^the cap of the org org_1 is 10 machine hours in this billing period and is used up/);
  assert.match(refused.message, /the period ends at 2026-02-28T00:00:00\.000Z/);
  assert.match(
    refused.message,
    /PATCH \/v1\/orgs\/org_1\/subscription\/usage-guardrails and a higher sandboxMachineHourLimit/,
  );
  assert.match(refused.message, /sandboxOverageEnabled true/);
  const inProject = refusalOf(ofProject).message;
  assert.match(inProject, /^the cap of the project prj_1 is 0\.5 machine hours/);
  assert.match(inProject, /PATCH \/v1\/orgs\/org_1\/projects\/prj_1\/usage-guardrails/);
  assert.doesNotMatch(inProject, /Overage/);
  assert.match(refusalOf({ ...ofOrg, cap: 1 }).message, /is 1 machine hour in/);
  assert.match(refusalOf({ ...ofOrg, cap: 0.0001 }).message, /is 0\.0001 machine hours in/);
});

test('a warning has the percentage, the usage and the consequence', () => {
  const at80 = describeWarning({ ...ofOrg, usedMs: 30_000_000 }, 80, { graceSeconds: 300 });
  assert.match(
    at80,
    /^80 % of the cap of the org org_1 reached: 8\.333 of 10 machine hours are used in this billing period\./,
  );
  assert.match(
    at80,
    /no sandbox can be created or woken; awake sandboxes go to sleep 300 s later, and ephemeral ones are destroyed\. An org admin can/,
  );
  assert.match(
    describeWarning(ofOrg, 100, null),
    /^100 % of the cap of the org org_1 reached: 10 of 10 .* Overage is enabled: sandboxes continue beyond the cap, and the excess is metered\.$/,
  );
});

test('sleeping and ephemeral sandboxes stop first, always_on last; recent failures wait', () => {
  const now = new Date('2026-02-01T00:00:00Z');
  const candidate = (mode: string, policy: string, failedMsAgo: number | null = null) => ({
    mode,
    persistence_policy: policy,
    status_reason_code: failedMsAgo === null ? null : 'sleep_failed',
    status_changed_at: new Date(now.getTime() - (failedMsAgo ?? 0)),
  });
  const [sleeps, always, ends] = [
    candidate('persistent', 'sleep_resume'),
    candidate('persistent', 'always_on'),
    candidate('ephemeral', 'always_on'),
  ];
  const failedLately = candidate('persistent', 'sleep_resume', SLEEP_AGAIN_AFTER_MS - 1);
  const failedBefore = candidate('persistent', 'sleep_resume', SLEEP_AGAIN_AFTER_MS);
  assert.deepEqual(inOrderOfSleep([always, sleeps, failedLately, ends, failedBefore], now), [
    [sleeps, ends, failedBefore],
    [always],
  ]);
});
