// The headers of an alias that is kept for old callers: since when it is deprecated (RFC 9745) and
// what to call instead (RFC 8594, RFC 5829).
import type { Route } from '@berth/contract/route/route.ts';

/**
 * Headers that every answer of a deprecated route carries, errors too; none for the others.
 * `params` are those of the request's path.
 */
export function deprecationHeaders(route: Route, params: Readonly<Record<string, string>>): Record<string, string> {
  if (route.deprecated === undefined) return {};
  const since = Math.floor(Date.parse(route.deprecated.since) / 1_000);
  const successor = route.deprecated.successor.replaceAll(/\{(\w+)\}/g, (_whole, name: string) =>
    encodeURIComponent(params[name] ?? ''),
  );
  return { deprecation: `@${since}`, link: `<${successor}>; rel="successor-version"` };
}
