// Generates values that match a schema of the document, and values that do not. Placeholders for
// ids are filled in when the request is sent (known.ts).
import fc, { type Arbitrary } from 'fast-check';
import type { Schema } from './document.ts';

/** Placeholder for a value seen in a response, such as an id, chosen when the request is sent. */
export class PlaceholderIds {
  /** Name of the field or parameter. */
  readonly name: string;
  readonly pick: number;
  readonly otherwise: string;

  constructor(name: string, pick: number, otherwise: string) {
    this.name = name;
    this.pick = pick;
    this.otherwise = otherwise;
  }
}

/** Fields and parameters, besides ids, with values in responses, and the field that has them. */
const SHOWN: Readonly<Record<string, string>> = { after: 'nextCursor', path: 'path' };

/** Annotations: keywords that constrain nothing. */
const ANNOTATIONS = new Set([
  'description',
  'title',
  'default',
  'example',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
  'format',
  '$comment',
]);
const KNOWN = new Set([
  ...[
    'type',
    'enum',
    'const',
    'anyOf',
    'oneOf',
    'properties',
    'required',
    'additionalProperties',
    'propertyNames',
    'minProperties',
    'maxProperties',
  ],
  ...[
    'items',
    'minItems',
    'maxItems',
    'minLength',
    'maxLength',
    'pattern',
    'minimum',
    'maximum',
    'exclusiveMinimum',
    'exclusiveMaximum',
  ],
]);
const LONGEST_TEXT = 200;
const LARGEST_NUMBER = 2 ** 40;
/** Matches most patterns. */
const PLAIN = fc.stringMatching(/^[a-z][a-z0-9]{0,7}(\/[a-z][a-z0-9]{0,7}){0,2}$/);

/** Any JSON value. */
export const anything: Arbitrary<unknown> = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom<unknown>(
    null,
    '',
    0,
    -1,
    1.5,
    true,
    [],
    {},
    '\u0000',
    2 ** 53,
    1e308,
    ['x'],
    { a: { b: 1 } },
    'x'.repeat(5_000),
  ),
);

/** Values that match the schema. Throws at an unknown keyword, so that none is ignored. */
export function fitting(schema: Schema, name = ''): Arbitrary<unknown> {
  const unknown = Object.keys(schema).filter(
    (keyword) => !KNOWN.has(keyword) && !ANNOTATIONS.has(keyword) && !keyword.startsWith('x-'),
  );
  if (unknown.length > 0) throw new Error(`the fuzzer knows nothing of ${unknown.join(', ')} (at ${name})`);
  if ('const' in schema) return fc.constant(schema['const']);
  if (Array.isArray(schema['enum'])) return fc.constantFrom<unknown>(...(schema['enum'] as unknown[]));
  const choices = (schema['anyOf'] ?? schema['oneOf']) as Schema[] | undefined;
  if (choices !== undefined) return fc.oneof(...choices.map((choice) => fitting(choice, name)));
  const { type } = schema;
  if (Array.isArray(type)) return fc.oneof(...type.map((one: unknown) => fitting({ ...schema, type: one }, name)));
  switch (type) {
    case 'string':
      return texts(schema, name);
    case 'integer':
    case 'number':
      return numbers(schema, type === 'integer');
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(fitting((schema['items'] ?? {}) as Schema, name), {
        minLength: (schema['minItems'] as number | undefined) ?? 0,
        maxLength: Math.min((schema['maxItems'] as number | undefined) ?? 4, 4),
      });
    case 'object':
      return objects(schema);
    case undefined:
      return anything;
    default:
      throw new Error(`the fuzzer knows no type ${JSON.stringify(type)} (at ${name})`);
  }
}

/** Values that mostly violate the schema. */
export function misfitting(schema: Schema, name = ''): Arbitrary<unknown> {
  const around: Arbitrary<unknown>[] = [anything];
  for (const keyword of ['minimum', 'maximum'] as const) {
    const bound = schema[keyword];
    if (typeof bound === 'number')
      around.push(fc.constantFrom<unknown>(bound - 1, bound + 1, bound + 0.5, String(bound)));
  }
  for (const keyword of ['minLength', 'maxLength'] as const) {
    const bound = schema[keyword];
    if (typeof bound === 'number' && bound <= 10_000)
      around.push(fc.constantFrom<unknown>('a'.repeat(Math.max(0, bound - 1)), 'a'.repeat(bound + 1)));
  }
  if (schema['type'] === 'object') {
    const properties = Object.entries((schema['properties'] ?? {}) as Record<string, Schema>);
    const base = fitting(schema, name) as Arbitrary<Record<string, unknown>>;
    around.push(
      base.chain((value) =>
        fc
          .dictionary(fc.constantFrom('surprise', 'id', '__proto', 'toString'), anything, { minKeys: 1 })
          .map((more) => ({ ...value, ...more })),
      ),
    );
    if (properties.length > 0) {
      around.push(
        fc
          .constantFrom(...properties)
          .chain(([key, part]) =>
            fc.tuple(base, misfitting(part, key)).map(([value, odd]) => ({ ...value, [key]: odd })),
          ),
        fc
          .constantFrom(...properties)
          .chain(([key]) =>
            base.map((value) => Object.fromEntries(Object.entries(value).filter(([one]) => one !== key))),
          ),
      );
    }
  }
  return fc.oneof(...around);
}

function texts(schema: Schema, name: string): Arbitrary<unknown> {
  const min = (schema['minLength'] as number | undefined) ?? 0;
  const max = Math.max(min, Math.min((schema['maxLength'] as number | undefined) ?? LONGEST_TEXT, LONGEST_TEXT));
  const pattern = typeof schema['pattern'] === 'string' ? new RegExp(schema['pattern'], 'u') : null;
  const shown = [schema['default'], ...((schema['examples'] as unknown[] | undefined) ?? [])].filter(
    (one): one is string => typeof one === 'string',
  );
  const few = Math.max(min, Math.min(max, 12));
  const plain = PLAIN.map((text) => text.padEnd(min, 'a').slice(0, Math.max(1, max)));
  const text = fc.oneof(
    { arbitrary: plain, weight: 4 },
    { arbitrary: someText('grapheme-ascii', min, few), weight: 2 },
    { arbitrary: someText('grapheme', min, few), weight: 2 },
    { arbitrary: someText('binary', min, few), weight: 1 },
    { arbitrary: fc.nat(max - min).map((more) => 'a'.repeat(min + more)), weight: 1 },
    ...(shown.length === 0 ? [] : [{ arbitrary: fc.constantFrom(...shown), weight: 2 }]),
  );
  // Falls back to a plain or seen value when the pattern rejects it, without interpreting patterns.
  const fit =
    pattern === null
      ? text
      : fc
          .tuple(text, plain, fc.constantFrom(...shown, ''))
          .map((some) => some.find((one) => pattern.test(one)) ?? some[0]);
  const kind = /id$/i.test(name) ? name : SHOWN[name];
  if (kind === undefined) return fit;
  // Mostly values from responses; for paths half, since new ones are needed too.
  const share = kind === 'path' ? 1 : 9;
  return fc
    .tuple(fc.nat(), fc.nat(share), fit)
    .map(([pick, odd, otherwise]) => (odd === 0 ? otherwise : new PlaceholderIds(kind, pick, otherwise)));
}

/** Cached: the library builds tables for each. */
const madeTexts = new Map<string, Arbitrary<string>>();

function someText(
  unit: 'grapheme-ascii' | 'grapheme' | 'binary',
  minLength: number,
  maxLength: number,
): Arbitrary<string> {
  const key = `${unit} ${minLength} ${maxLength}`;
  const made = madeTexts.get(key) ?? fc.string({ unit, minLength, maxLength });
  madeTexts.set(key, made);
  return made;
}

function numbers(schema: Schema, whole: boolean): Arbitrary<number> {
  const bound = (keyword: string, otherwise: number): number =>
    typeof schema[keyword] === 'number' ? schema[keyword] : otherwise;
  const min = Math.max(bound('minimum', -LARGEST_NUMBER), bound('exclusiveMinimum', -LARGEST_NUMBER) + (whole ? 1 : 0));
  const max = Math.min(bound('maximum', LARGEST_NUMBER), bound('exclusiveMaximum', LARGEST_NUMBER) - (whole ? 1 : 0));
  const ends = fc.constantFrom(min, max);
  return whole ? fc.oneof(fc.integer({ min, max }), ends) : fc.oneof(fc.double({ min, max, noNaN: true }), ends);
}

function objects(schema: Schema): Arbitrary<unknown> {
  const properties = (schema['properties'] ?? {}) as Record<string, Schema>;
  const required = (schema['required'] ?? []) as string[];
  const parts = (names: readonly string[]): Record<string, Arbitrary<unknown>> =>
    Object.fromEntries(names.map((name) => [name, fitting(properties[name] ?? {}, name)]));
  const all = fc.record(parts(Object.keys(properties)), { requiredKeys: required });
  const named = fc.oneof({ arbitrary: all, weight: 2 }, { arbitrary: fc.record(parts(required)), weight: 1 });
  const more = schema['additionalProperties'];
  if (typeof more !== 'object' || more === null)
    return atLeast(named, (schema['minProperties'] as number | undefined) ?? 0, properties);
  const names = fitting({ type: 'string', ...(schema['propertyNames'] as Schema | undefined) }) as Arbitrary<string>;
  const rest = fc.dictionary(names, fitting(more as Schema), {
    maxKeys: Math.min((schema['maxProperties'] as number | undefined) ?? 5, 5),
  });
  return fc.tuple(rest, named).map(([others, own]) => ({ ...others, ...own }));
}

/** At least one property, where none is required but some must be present. */
function atLeast(objects: Arbitrary<object>, count: number, properties: Record<string, Schema>): Arbitrary<unknown> {
  const names = Object.keys(properties);
  if (count === 0 || names.length === 0) return objects;
  return fc
    .constantFrom(...names)
    .chain((name) =>
      fc.tuple(objects, fitting(properties[name] ?? {}, name)).map(([value, one]) => ({ ...value, [name]: one })),
    );
}
