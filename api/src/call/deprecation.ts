// Headers of a deprecated alias: date of deprecation (RFC 9745) and its successor (RFC 8594, RFC
// 5829).
import type { Route } from '@berth/contract/route/route.ts';

/**
 * Headers of every response of a deprecated route, errors included; none for other routes. `params`
 * are those of the request's path.
 */
export function deprecationHeaders(route: Route, params: Readonly<Record<string, string>>): Record<string, string> {
  if (route.deprecated === undefined) return {};
  const since = Math.floor(Date.parse(route.deprecated.since) / 1_000);
  const successor = route.deprecated.successor.replaceAll(/\{(\w+)\}/g, (_whole, name: string) =>
    encodeURIComponent(params[name] ?? ''),
  );
  return { deprecation: `@${since}`, link: `<${successor}>; rel="successor-version"` };
}
