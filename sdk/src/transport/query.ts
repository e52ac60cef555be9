// Queries and bodies of the generated client.
import { BerthError } from './errors.ts';

/** Parameters that narrow a result: without one of them, the service returns more. */
const FILTERS = /^(?:\w+Id|name|createdBy|q|metadata|status|kind|exceptKind|needsYou)(?:\[|$)/;

/**
 * Lists repeat their name; a map names its keys in brackets. Omits absent values, except those of
 * filters: a user id that is missing by mistake would match the sandboxes of all users.
 */
export function queryOf(query: Readonly<Record<string, unknown>>): string {
  const search = new URLSearchParams();
  const add = (name: string, value: unknown): void => {
    if (FILTERS.test(name)) required(value, `the filter ${name}`, 'match everything');
    if (value === undefined || value === null) return;
    if (typeof value !== 'object') return search.append(name, value as string);
    for (const [key, one] of Object.entries(value)) add(Array.isArray(value) ? name : `${name}[${key}]`, one);
  };
  for (const [name, value] of Object.entries(query)) add(name, value);
  // A plus is a space in forms only.
  return search.toString().replaceAll('+', '%20');
}

/** An end user that is missing by mistake would make a sandbox of nobody. */
export function bodyOf(body: unknown): string {
  return JSON.stringify(body, (name, value: unknown) => {
    if (name === 'endUserId') required(value, name, 'name no end user');
    return value;
  });
}

/** Throws for an absent value and an empty list. @param effect of its omission */
export function required(value: unknown, name: string, effect: string): void {
  if (value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0)) return;
  const message = `cannot send the request: ${name} is ${JSON.stringify(value)}. Omit it to ${effect}`;
  throw new BerthError(message, { code: 'configuration' });
}
