// Matches of the command palette, and the move between them.

/** Whether the text contains every word of the query, in any case. */
export function matches(text: string, query: string): boolean {
  const lower = text.toLowerCase();
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}

/** Whether the service finds the sandbox by the query, so that a former result may stay. */
export function isFoundBy({ name, id }: { name: string; id: string }, query: string): boolean {
  return name.toLowerCase().includes(query.toLowerCase()) || id.startsWith(query);
}

/** The key `by` steps after another, from the end to the start and back. */
export function keyAfter(keys: readonly string[], key: string | undefined, by: 1 | -1): string | null {
  const index = key === undefined ? -1 : keys.indexOf(key);
  return keys.at((index + by + keys.length) % Math.max(1, keys.length)) ?? null;
}
