// The contract's paths (`/v1/orgs/{orgId}`) as the router wants them, and which methods a path has.
import type { Method } from '@berth/contract/route/route.ts';

export function toFastifyPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}

/** Methods of those whose path fits the URL; empty: there is no such path. */
export function allowedMethods(served: readonly { method: Method; path: string }[], url: string): string[] {
  const path = url.split('?', 1)[0] ?? '';
  const fitting = served.filter((one) => new RegExp(`^${one.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path));
  const methods = new Set<string>(fitting.map(({ method }) => method));
  if (methods.has('GET')) methods.add('HEAD');
  return [...methods].toSorted();
}
