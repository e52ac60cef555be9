// The body that the fields of `berth api` describe.
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';

export type ApiField = readonly [key: string, value: unknown];

/** Value of a typed field. */
export function typedValue(text: string): unknown {
  if (text === 'true' || text === 'false') return text === 'true';
  if (text === 'null') return null;
  return /^-?(?:0|[1-9]\d{0,14})$/.test(text) ? Number(text) : text;
}

/** `a[b]=1` is `{ a: { b: 1 } }`, `a[]=1` is `{ a: [1] }`. Throws a UsageError for conflicts. */
export function bodyOf(fields: readonly ApiField[]): Record<string, unknown> {
  const body = emptyObject();
  for (const [key, value] of fields) {
    const [, first = '', rest = ''] = /^([^[]+)(.*)$/.exec(key) ?? [];
    const names = [first, ...[...rest.matchAll(/\[([^[\]]*)\]/g)].map(([, name = '']) => name)];
    const isItem = names.at(-1) === '';
    if (isItem) names.pop();
    const last = names.pop() ?? '';
    let place = body;
    for (const name of names) {
      const below = (place[name] ??= emptyObject());
      if (typeof below !== 'object' || below === null || Array.isArray(below)) throw conflict(key);
      place = below as Record<string, unknown>;
    }
    if (!isItem) {
      if (last in place) throw conflict(key);
      place[last] = value;
    } else {
      const list = (place[last] ??= []);
      if (!Array.isArray(list)) throw conflict(key);
      list.push(value);
    }
  }
  return body;
}

/** Without a prototype: keys such as `__proto__` are own. */
function emptyObject(): Record<string, unknown> {
  return Object.create(null) as Record<string, unknown>;
}

function conflict(key: string): UsageError {
  return new UsageError(`the field '${plainText(key)}' conflicts with another field`);
}
