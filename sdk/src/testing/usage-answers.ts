// Usage handlers of the test server: awake time in the current month, on a plan without limits.
import { USAGE_DAYS } from '../generated/limits.ts';
import type { EndUserUsage, OrgUsage, Project, UsageGuardrails } from '../generated/raw/index.ts';
import type { RequestContext, Answers } from './answering.ts';
import { Refusal } from './requests/refusal.ts';
import type { TestSandbox } from './sandbox.ts';
import type { TestState } from './state.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const dateOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

export const USAGE_ANSWERS: Answers = {
  getOrgUsage: ({ query }, about) => orgUsage(query, about),
  getEndUserUsage: (_, { state, nowMs }) => {
    const hours = new Map<string, number>();
    for (const one of sandboxesOf(state, nowMs)) {
      const { endUserId } = one.record;
      if (endUserId !== null) hours.set(endUserId, (hours.get(endUserId) ?? 0) + one.awakeMs(nowMs) / HOUR_MS);
    }
    const endUsers = [...hours].map(([endUserId, machineHours]): EndUserUsage => ({
      endUserId,
      machineHours,
      estimatedCogsUsd: 0,
    }));
    return { ...periodOf(nowMs), endUsers: endUsers.toSorted((one, other) => other.machineHours - one.machineHours) };
  },
  getDailyUsage: ({ query }, about) => {
    const { nowMs } = about;
    const days = Number(query['days'] ?? USAGE_DAYS.default);
    // All time counts on the day of the request.
    const used = { [dateOf(nowMs)]: orgUsage(query, about).usedMachineHours };
    return {
      days: Array.from({ length: days }, (_, index) => {
        const date = dateOf(nowMs - (days - 1 - index) * DAY_MS);
        return { date, machineHours: used[date] ?? 0 };
      }),
    };
  },
  listPlans: () => ({ plans: [] }),
  updateUsageGuardrails: ({ body }, { state }) => {
    const { guardrails } = state;
    if (body.sandboxMachineHourLimit !== undefined)
      guardrails.sandboxMachineHourLimitOverride = body.sandboxMachineHourLimit;
    if (body.sandboxOverageEnabled !== undefined) guardrails.sandboxOverageEnabled = body.sandboxOverageEnabled;
    guardrails.sandboxMachineHourLimit = guardrails.sandboxMachineHourLimitOverride;
    return { usageGuardrails: guardrails };
  },
  updateProjectUsageGuardrails: ({ params, body }, { state }) => {
    const project = state.project(params['projectId'] ?? '');
    project.sandboxMachineHourLimit = body.sandboxMachineHourLimit;
    return { usageGuardrails: { sandboxMachineHourLimit: project.sandboxMachineHourLimit } };
  },
};

function orgUsage(query: Readonly<Record<string, unknown>>, { state, nowMs }: RequestContext): OrgUsage {
  const { projectId, endUserId } = query as { projectId?: string; endUserId?: string };
  const project = projectId === undefined ? null : projectOf(state, projectId);
  const counted = sandboxesOf(state, nowMs).filter(
    ({ record }) =>
      (project === null || record.projectId === project.id) &&
      (endUserId === undefined || record.endUserId === endUserId),
  );
  const usedMachineHours = counted.reduce((sum, one) => sum + one.awakeMs(nowMs), 0) / HOUR_MS;
  const guardrails: UsageGuardrails = state.guardrails;
  const limit = project === null ? guardrails.sandboxMachineHourLimit : project.sandboxMachineHourLimit;
  const percentUsed = limit === null ? 0 : limit === 0 ? 100 : Math.floor((usedMachineHours / limit) * 10_000) / 100;
  const status =
    percentUsed > 100 ? 'exceeded' : percentUsed === 100 ? 'reached' : percentUsed >= 80 ? 'warning' : 'normal';
  return {
    includedMachineHours: null,
    sandboxMachineHourLimit: limit,
    sandboxMachineHourLimitOverride:
      project === null ? guardrails.sandboxMachineHourLimitOverride : project.sandboxMachineHourLimit,
    sandboxOverageEnabled: guardrails.sandboxOverageEnabled,
    usedMachineHours,
    remainingMachineHours: limit === null ? null : Math.max(0, limit - usedMachineHours),
    usageAlert: {
      percentUsed,
      status,
      message: `${usedMachineHours.toFixed(2)} machine hours are used in this billing period.`,
    },
    ...periodOf(nowMs),
    overageMachineHours: 0,
    estimatedOverageUsd: null,
  };
}

function projectOf(state: TestState, projectId: string): Project {
  const project = state.projects.get(projectId);
  if (project === undefined) throw new Refusal('unknown_project');
  return project;
}

function sandboxesOf(state: TestState, nowMs: number): TestSandbox[] {
  return [...state.sandboxes.values()].map((one) => {
    one.catchUp(nowMs);
    return one;
  });
}

function periodOf(nowMs: number): { periodStartsAt: string; periodEndsAt: string } {
  const now = new Date(nowMs);
  const month = (more: number): string =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + more, 1)).toISOString();
  return { periodStartsAt: month(0), periodEndsAt: month(1) };
}
