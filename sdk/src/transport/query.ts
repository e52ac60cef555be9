// Queries of the generated client.

/** Lists repeat their name; a map names its keys in brackets. Omits absent values. */
export function queryOf(query: Readonly<Record<string, unknown>>): string {
  const search = new URLSearchParams();
  const add = (name: string, value: unknown): void => {
    if (value === undefined || value === null) return;
    if (typeof value !== 'object') return search.append(name, value as string);
    for (const [key, one] of Object.entries(value)) add(Array.isArray(value) ? name : `${name}[${key}]`, one);
  };
  for (const [name, value] of Object.entries(query)) add(name, value);
  // A plus is a space in forms only.
  return search.toString().replaceAll('+', '%20');
}
