// What the operator chose that services act on. Read in src/config.ts.
import type { GitHosts } from '../../rules/clones/repository.ts';
import type { MachineRates } from '@berth/contract/billing/machine-rates.ts';

export interface Settings {
  /**
   * Origin by which people reach the service, without a slash at its end: in mailed links and
   * cookies (`BERTH_PUBLIC_URL`).
   */
  publicUrl: string;
  /**
   * Origin below whose host every port of every sandbox has a host of its own (`BERTH_PREVIEW_URL`;
   * rules/preview-host.ts).
   */
  previewUrl: string;
  /** Of one credential, on one API instance (`BERTH_REQUESTS_PER_MINUTE`). */
  requestsPerMinute: number;
  /** How long a session token is good for (`BERTH_SESSION_TOKEN_MINUTES`). */
  sessionTokenMinutes: number;
  /**
   * Who may make an account: those with an invitation, or anybody with a verified address
   * (`BERTH_SIGN_UP`).
   */
  signUp: 'invited' | 'open';
  /**
   * From when a cap on machine hours was seen to be reached until what is awake goes to sleep
   * (`BERTH_CAP_GRACE_SECONDS`).
   */
  capGraceSeconds: number;
  /** What machine time costs, for estimates (`BERTH_PLANS_FILE`). */
  machineRates: MachineRates;
  /**
   * Addresses or networks of proxies whose `X-Forwarded-For` is believed (`BERTH_TRUSTED_PROXIES`).
   */
  trustedProxies: readonly string[];
  git: GitSettings;
}

/**
 * Where repositories are cloned from (`BERTH_GIT_BASE_URL`, `BERTH_GIT_ALLOW_URLS`), and what a
 * clone may take.
 */
export interface GitSettings extends GitHosts {
  /** `BERTH_CLONE_TIMEOUT_SECONDS`. */
  cloneTimeoutSeconds: number;
  /** Most that a clone fetches (`BERTH_CLONE_MAX_MIB`). */
  cloneMaxMib: number;
}
