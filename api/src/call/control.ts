// Context of route calls: services, routes and rate limits. A process has one, shared by all
// adapters.
import type { Route } from '@berth/contract/route/route.ts';
import type { ServiceContext } from '../services/context/context.ts';
import { OrgPlans } from '../services/billing/org-plans.ts';
import type { BoundRoute } from './bind.ts';
import { BytesInFlight } from './bytes-in-flight.ts';
import { FairQueue } from './fair-queue.ts';
import { FileLinkLimits } from './file-link-limits.ts';
import { FailedAuthentications, OrgRequestLimit, RequestLimit } from './rate-limit.ts';

/** Less than the database connections by default: admitted calls find some free. */
const ADMISSIONS_AT_ONCE = 8;

export interface CallControl {
  context: ServiceContext;
  routes: readonly BoundRoute[];
  /** Limits requests per credential. */
  requests: RequestLimit;
  /** Limits requests per org. */
  orgRequests: OrgRequestLimit;
  orgPlans: OrgPlans;
  /** Limits the holders of file links. */
  fileLinks: FileLinkLimits;
  /** Limits failed authentications per address. */
  failures: FailedAuthentications;
  /** Shares the admissions in progress, and so the database, among the credentials. */
  admissions: FairQueue;
  /** Limits the bytes of bodies. */
  inFlight: BytesInFlight;
  /** Receives every successful response as the caller will parse it. */
  onAnswer?: ((route: Route, answer: unknown) => void) | undefined;
}

export interface CallControlOptions {
  /** Monotonic clock, in milliseconds; counts requests. */
  now?: (() => number) | undefined;
  onAnswer?: CallControl['onAnswer'];
}

export function newCallControl(
  context: ServiceContext,
  routes: readonly BoundRoute[],
  { now, onAnswer }: CallControlOptions = {},
): CallControl {
  const clock = now === undefined ? {} : { now };
  const counting = { perMinute: context.settings.requestsPerMinute, ...clock };
  return {
    context,
    routes,
    requests: new RequestLimit(counting),
    orgRequests: new OrgRequestLimit({ perMinute: context.settings.orgRequestsPerMinute, ...clock }),
    orgPlans: new OrgPlans(context, now),
    fileLinks: new FileLinkLimits({ ...counting, orgPerMinute: context.settings.orgRequestsPerMinute }),
    failures: new FailedAuthentications(counting),
    admissions: new FairQueue(ADMISSIONS_AT_ONCE),
    inFlight: new BytesInFlight(context.settings.bodiesInFlightMib),
    onAnswer,
  };
}
