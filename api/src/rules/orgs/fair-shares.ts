// Limits above the credential: without them a user multiplies rates and plans by making orgs, and
// an org by making keys and projects. Pure; callers count under a lock.
import type { ErrorCode } from '@berth/contract/route/errors.ts';
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

const REFUSALS: { readonly [share in keyof FairShares]: { code: ErrorCode; text: (limit: number) => string } } = {
  orgsPerUser: {
    code: 'org_limit',
    text: (limit) =>
      `you have created ${limit} orgs, the maximum for a user; the operator can raise it (BERTH_ORGS_PER_USER)`,
  },
  projectsPerOrg: {
    code: 'project_limit',
    text: (limit) =>
      `the org has ${limit} projects, the maximum; delete some, or the operator can raise it (BERTH_PROJECTS_PER_ORG)`,
  },
  apiKeysPerOrg: {
    code: 'api_key_limit',
    text: (limit) =>
      `the org has ${limit} usable API keys, the maximum; ` +
      'revoke some, or the operator can raise it (BERTH_API_KEYS_PER_ORG)',
  },
  agentTokensPerUser: {
    code: 'agent_token_limit',
    text: (limit) =>
      `you have ${limit} usable agent tokens, the maximum for a user; ` +
      'revoke some, or the operator can raise it (BERTH_AGENT_TOKENS_PER_USER)',
  },
};

/** Throws the refusal of the share, naming its limit, unless `count` leaves room for one more. */
export function requireShare(shares: FairShares, share: keyof FairShares, count: number): void {
  const limit = shares[share];
  if (count < limit) return;
  const { code, text } = REFUSALS[share];
  throw new CodedError(code, text(limit));
}
