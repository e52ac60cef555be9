// The contract's paths (`/v1/orgs/{orgId}`) as the router wants them, and which methods a path has.
import type { BoundRoute } from '../routes/bind.ts';

export function toFastifyPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}

/** Methods of the routes whose path fits the URL; empty: there is no such path. */
export function allowedMethods(routes: readonly BoundRoute[], url: string): string[] {
  const path = url.split('?', 1)[0] ?? '';
  const fitting = routes.filter(({ route }) => new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path));
  const methods = new Set<string>(fitting.map(({ route }) => route.method));
  if (methods.has('GET')) methods.add('HEAD');
  return [...methods].toSorted();
}
