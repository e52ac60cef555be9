// Converts the contract's paths (`/v1/orgs/{orgId}`) for the router, and lists the methods of a
// path.

export function toFastifyPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+').replace(/\*$/, '.*')}$`);
}

/** Methods of the routes whose path matches the URL; empty: the path does not exist. */
export function allowedMethods(served: readonly { method: string; path: string }[], url: string): string[] {
  const path = url.split('?', 1)[0] ?? '';
  const fitting = served.filter((one) => patternOf(one.path).test(path));
  const methods = new Set<string>(fitting.map(({ method }) => method));
  if (methods.has('GET')) methods.add('HEAD');
  return [...methods].toSorted();
}
