// The operator's settings that services use. Read in src/config/config.ts.
import type { GitHosts } from '../../rules/clones/repository.ts';
import type { ModelEndpoints } from '../../rules/agents/model-endpoints.ts';
import type { SignUpTries } from '../../rules/access/throttle.ts';
import type { FairShares } from '../../rules/orgs/fair-shares.ts';
import type { MachineRates } from '@berth/contract/billing/machine-rates.ts';

export interface Settings {
  /** Public origin for mailed links and cookies, without trailing slash (`BERTH_PUBLIC_URL`). */
  publicUrl: string;
  /**
   * Origin whose subdomains are the previews' hosts (`BERTH_PREVIEW_URL`; rules/previews/host.ts).
   */
  previewUrl: string;
  /**
   * Cookies that apps receive: those proven to be their own (rules/previews/app-cookies.ts), or all
   * (`BERTH_PREVIEW_COOKIES`).
   */
  previewCookies: 'proven' | 'all';
  /** Folder of the built web console; null: none (`BERTH_CONSOLE_FOLDER`). */
  consoleFolder: string | null;
  /** Rate limit per credential and API replica (`BERTH_REQUESTS_PER_MINUTE`). */
  requestsPerMinute: number;
  /**
   * Rate limit of all credentials of an org together, per API replica
   * (`BERTH_ORG_REQUESTS_PER_MINUTE`).
   */
  orgRequestsPerMinute: number;
  /** Memory for bodies in flight of this process (`BERTH_BODIES_IN_FLIGHT_MIB`). */
  bodiesInFlightMib: number;
  shares: FairShares;
  /** Limit of open connections into sandboxes, per API replica (`BERTH_API_STREAMS`). */
  streams: number;
  /**
   * Limits of an address that visits previews without being a member, per API replica
   * (`BERTH_VISITOR_REQUESTS_PER_MINUTE`, `BERTH_VISITOR_CONNECTIONS`).
   */
  visitors: { requestsPerMinute: number; connections: number };
  /** Lifetime of a session token (`BERTH_SESSION_TOKEN_MINUTES`). */
  sessionTokenMinutes: number;
  /**
   * Age of a sign-in up to which it may create credentials, owners and admins; 0: any age
   * (`BERTH_REAUTHENTICATE_MINUTES`).
   */
  reauthenticateMinutes: number;
  /** Sign-up: only with an invitation, or open to any verified address (`BERTH_SIGN_UP`). */
  signUp: 'invited' | 'open';
  /** New accounts per hour (`BERTH_SIGN_UPS_PER_ADDRESS`, `BERTH_SIGN_UPS_PER_DOMAIN`). */
  signUpsPerHour: SignUpTries;
  /**
   * Grace period from the first observation of a reached cap on machine hours until awake sandboxes
   * are put to sleep (`BERTH_CAP_GRACE_SECONDS`).
   */
  capGraceSeconds: number;
  /** Price of machine time, for estimates (`BERTH_PLANS_FILE`). */
  machineRates: MachineRates;
  /**
   * Addresses or networks of proxies whose `X-Forwarded-For` is trusted (`BERTH_TRUSTED_PROXIES`).
   */
  trustedProxies: readonly string[];
  git: GitSettings;
  /** Endpoints that projects may store a model key for (`BERTH_MODEL_ENDPOINTS`). */
  modelEndpoints: ModelEndpoints;
}

/**
 * Allowed repository sources (`BERTH_GIT_BASE_URL`, `BERTH_GIT_ALLOW_URLS`), and limits of a clone.
 */
export interface GitSettings extends GitHosts {
  /** `BERTH_CLONE_TIMEOUT_SECONDS`. */
  cloneTimeoutSeconds: number;
  /** Limit on fetched data (`BERTH_CLONE_MAX_MIB`). */
  cloneMaxMib: number;
}
