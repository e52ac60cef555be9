// Lists of the test server, whole or by page.
import { Refusal } from './refusal.ts';
import type { TestCall } from './request.ts';

export function newestFirst<T extends { createdAt: string }>(all: readonly T[]): T[] {
  return [...all].reverse().toSorted((one, other) => other.createdAt.localeCompare(one.createdAt));
}

/**
 * Returns the whole list, or the requested page. A cursor stays valid when its item is no longer
 * shown.
 */
export function paged<T>(
  name: string,
  all: readonly T[],
  query: TestCall['query'],
  {
    idOf = (one) => (one as { id: string }).id,
    shows = () => true,
  }: { idOf?: (one: T) => string; shows?: (one: T) => boolean } = {},
): Record<string, unknown> {
  const { limit, after } = query;
  if (limit === undefined && after === undefined) return { [name]: all.filter(shows) };
  const begin = after === undefined ? 0 : all.findIndex((one) => idOf(one) === after) + 1;
  if (after !== undefined && begin === 0)
    throw new Refusal('invalid_request', 'query.after must be the nextCursor of a page of this list');
  const rest = all.slice(begin).filter(shows);
  const page = rest.slice(0, (limit as number | undefined) ?? rest.length);
  const hasMore = page.length < rest.length;
  const last = page.at(-1);
  return { [name]: page, nextCursor: hasMore && last !== undefined ? idOf(last) : null, hasMore };
}
