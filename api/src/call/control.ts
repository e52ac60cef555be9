// What calls of routes work with: services, routes and the rates of callers. One per process,
// shared by all adapters.
import type { Route } from '@berth/contract/route/route.ts';
import type { ServiceContext } from '../services/context/context.ts';
import type { BoundRoute } from './bind.ts';
import { FailedAuthentications, RequestLimit } from './rate-limit.ts';

export interface CallControl {
  context: ServiceContext;
  routes: readonly BoundRoute[];
  /** Requests of each credential. */
  requests: RequestLimit;
  /** Failed authentications of each address. */
  failures: FailedAuthentications;
  /** Receives every successful response as its caller will parse it. */
  onAnswer?: ((route: Route, answer: unknown) => void) | undefined;
}

export interface CallControlOptions {
  /** Milliseconds of a clock that never goes back; counts requests. */
  now?: (() => number) | undefined;
  onAnswer?: CallControl['onAnswer'];
}

export function newCallControl(
  context: ServiceContext,
  routes: readonly BoundRoute[],
  { now, onAnswer }: CallControlOptions = {},
): CallControl {
  const counting = { perMinute: context.settings.requestsPerMinute, ...(now === undefined ? {} : { now }) };
  return {
    context,
    routes,
    requests: new RequestLimit(counting),
    failures: new FailedAuthentications(counting),
    onAnswer,
  };
}
