// Limits of the holders of file links, who may be anyone: none of them uses up the requests or the
// transfers that the credentials of the org have. Counts are per process. Errors name no limit of
// the org.
import type { Plan } from '@berth/contract/billing/plans.ts';
import { CodedError } from '../rules/coded-error.ts';
import { FileLinkPlaces } from '../services/files/link-places.ts';
import { Buckets } from './rate-limit.ts';

interface FileLinkRates {
  /** Requests with a link: as many as with a credential. */
  perMinute: number;
  /** Requests with all links of an org without a limit of its plan; its credentials count apart. */
  orgPerMinute: number;
  /** Monotonic clock, in milliseconds. */
  now?: () => number;
}

export class FileLinkLimits {
  readonly #ofLinks: Buckets;
  readonly #ofOrgs: Buckets;
  /** Places of the transfers that run and wait. */
  readonly places = new FileLinkPlaces();

  constructor({ perMinute, orgPerMinute, ...clock }: FileLinkRates) {
    this.#ofLinks = new Buckets({ perMinute, ...clock });
    this.#ofOrgs = new Buckets({ perMinute: orgPerMinute, ...clock });
  }

  /** Counts a request with the link. Throws `rate_limited`. */
  count(linkId: string): void {
    requireAllowed(this.#ofLinks.take(linkId), 'with this link');
  }

  /** Counts a request with a link of the org that opens. Throws `rate_limited`. */
  countForOrg(orgId: string, plan: Plan | null): void {
    requireAllowed(this.#ofOrgs.take(orgId, plan?.requestsPerMinute ?? undefined), 'with links like this one');
  }
}

function requireAllowed({ allowed, nextInSeconds }: { allowed: boolean; nextInSeconds: number }, which: string): void {
  if (allowed) return;
  throw new CodedError('rate_limited', `too many requests ${which}; retry in ${nextInSeconds} s`, {
    retryAfterSeconds: nextInSeconds,
  });
}
