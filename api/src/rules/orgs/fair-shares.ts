// Limits above the credential: without them a user multiplies rates and plans by making orgs, and
// an org by making keys and projects. Pure; callers count under a lock.
import type { ErrorCode } from '@berth/contract/route/errors.ts';
import type { Plan } from '@berth/contract/billing/plans.ts';
import { describePlan } from '../billing/plan-limits.ts';
import { CodedError } from '../coded-error.ts';

export interface FairShares {
  /** Orgs that a user creates (`BERTH_ORGS_PER_USER`). */
  orgsPerUser: number;
  /** Projects of an org that are not deleted (`BERTH_PROJECTS_PER_ORG`). */
  projectsPerOrg: number;
  /** API keys of an org that are neither revoked nor expired (`BERTH_API_KEYS_PER_ORG`). */
  apiKeysPerOrg: number;
  /** A user's agent tokens that are neither revoked nor expired (`BERTH_AGENT_TOKENS_PER_USER`). */
  agentTokensPerUser: number;
}

/** Field of a plan that replaces the configured limit. */
const PLAN_FIELDS = {
  orgsPerUser: 'orgs',
  projectsPerOrg: 'projects',
  apiKeysPerOrg: 'apiKeys',
} as const satisfies {
  [share in keyof FairShares]?: keyof Plan;
};

interface Refusal {
  code: ErrorCode;
  /** The limit, and a remedy of the user, before that of the operator. */
  text: (limit: number) => string;
  variable: string;
}

const REFUSALS: { readonly [share in keyof FairShares]: Refusal } = {
  orgsPerUser: {
    code: 'org_limit',
    text: (limit) => `you have created ${limit} orgs, the maximum for a user;`,
    variable: 'BERTH_ORGS_PER_USER',
  },
  projectsPerOrg: {
    code: 'project_limit',
    text: (limit) => `the org has ${limit} projects, the maximum; delete some, or`,
    variable: 'BERTH_PROJECTS_PER_ORG',
  },
  apiKeysPerOrg: {
    code: 'api_key_limit',
    text: (limit) => `the org has ${limit} usable API keys, the maximum; revoke some, or`,
    variable: 'BERTH_API_KEYS_PER_ORG',
  },
  agentTokensPerUser: {
    code: 'agent_token_limit',
    text: (limit) => `you have ${limit} usable agent tokens, the maximum for a user; revoke some, or`,
    variable: 'BERTH_AGENT_TOKENS_PER_USER',
  },
};

/**
 * Throws the refusal of the share, naming its limit, unless `count` leaves room for one more.
 * @param plan of the org; null if none is in force, then the configuration applies
 */
export function requireShare(
  shares: FairShares,
  share: keyof FairShares,
  count: number,
  plan: Plan | null = null,
): void {
  const planned = plan !== null && share in PLAN_FIELDS ? plan[PLAN_FIELDS[share as keyof typeof PLAN_FIELDS]] : null;
  const limit = planned ?? shares[share];
  if (count < limit) return;
  const { code, text, variable } = REFUSALS[share];
  // `count` can exceed the limit of a plan that the org changed to.
  const remedy =
    plan === null || planned === null
      ? `the operator can raise it (${variable})`
      : `choose a plan with more: ${describePlan(plan)} allows ${planned}`;
  throw new CodedError(code, `${text(planned === null ? limit : count)} ${remedy}`);
}

/**
 * Of the plans of a user's orgs, the one that allows the most orgs. null stands for an org without
 * a plan in force, to which the configuration applies.
 */
export function planWithMostOrgs(shares: FairShares, plans: readonly (Plan | null)[]): Plan | null {
  const orgsOf = (plan: Plan | null): number => plan?.orgs ?? shares.orgsPerUser;
  return plans.reduce((most, plan) => (orgsOf(plan) > orgsOf(most) ? plan : most), plans[0] ?? null);
}
