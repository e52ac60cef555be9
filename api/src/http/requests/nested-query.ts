// Objects in query strings: `name[KEY]=VALUE` (style `deepObject` of OpenAPI).

import { invalidField } from '../../rules/coded-error.ts';

const IN_OBJECT = /^(?<name>\w+)\[(?<key>[^[\]]*)\]$/;

/**
 * Collects parameters of the form `name[KEY]` in an object per name; returns others as they are.
 * Throws `invalid_request` for the key `__proto__`, which schemas would drop.
 */
export function nestedQuery(query: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const nested = empty();
  for (const [parameter, value] of Object.entries(query)) {
    const { name, key } = IN_OBJECT.exec(parameter)?.groups ?? {};
    if (key === '__proto__') throw invalidField(`query.${name}`, 'must have no field __proto__');
    if (name === undefined || key === undefined) nested[parameter] = value;
    else if (!Object.hasOwn(query, name)) ((nested[name] ??= empty()) as Record<string, unknown>)[key] = value;
  }
  return nested;
}

/** Without a prototype: callers choose the keys. */
function empty(): Record<string, unknown> {
  return Object.create(null) as Record<string, unknown>;
}
