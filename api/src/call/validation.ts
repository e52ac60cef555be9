// Parses input with the contract's schemas. Errors name the place, the value found and the allowed
// values.
import { z } from 'zod';
import { CodedError } from '../rules/coded-error.ts';

type Issue = z.core.$ZodIssue;

const MAX_ISSUES_TOLD = 5;
const MAX_VALUE_CHARACTERS = 60;

/** Name of a field in messages; `steps` lead to it from the whole part. */
export type NameField = (place: Place, steps: readonly string[]) => string;

type Place = 'body' | 'query' | 'path';

const dotted: NameField = (place, steps) => [place, ...steps].join('.');

/**
 * Returns the parsed value. Throws `invalid_request` naming up to five faults; `place` is body,
 * query or path.
 */
export function parseWith<S extends z.ZodType>(
  schema: S,
  value: unknown,
  place: Place,
  nameOf: NameField = dotted,
): z.output<S> {
  const result = schema.safeParse(value, { reportInput: true });
  if (result.success) return result.data;
  const told = result.error.issues
    .slice(0, MAX_ISSUES_TOLD)
    .map((issue) => sentence(issue, schema, (steps) => nameOf(place, steps)));
  const more = result.error.issues.length - told.length;
  const [first] = result.error.issues;
  const field = first && nameOf(place, stepsOf(first));
  throw new CodedError('invalid_request', told.join('; ') + (more > 0 ? `; and ${more} more` : ''), {
    ...(field === undefined ? {} : { field }),
  });
}

/** Steps to the field at fault, which may be an unknown one. */
function stepsOf(issue: Issue): string[] {
  const steps = issue.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0] ?? ''] : issue.path;
  return steps.map((step) => shorten(String(step)));
}

function sentence(issue: Issue, schema: z.ZodType, nameOf: (steps: readonly string[]) => string): string {
  const where = nameOf(issue.path.map((step) => shorten(String(step))));
  const shown = isSecret(schema, issue.path) ? kindOf(issue.input) : show(issue.input);
  switch (issue.code) {
    case 'unrecognized_keys': {
      const names = issue.keys.slice(0, MAX_ISSUES_TOLD).map((key) => `${where}.${shorten(key)}`);
      if (issue.keys.length > names.length) names.push(`and ${issue.keys.length - names.length} more`);
      const allowed = fieldsAt(schema, issue.path);
      const rest = allowed.length === 0 ? 'no fields are allowed here' : `allowed: ${allowed.join(', ')}`;
      return `${names.join(', ')}: unknown field${issue.keys.length === 1 ? '' : 's'}; ${rest}`;
    }
    case 'invalid_type':
      if (issue.input === undefined) return `${where} is required: ${article(issue.expected)}`;
      return `${where} must be ${article(issue.expected)}, not ${shown}`;
    case 'invalid_value': {
      const allowed = issue.values.map((value) => JSON.stringify(value)).join(', ');
      return issue.input === undefined
        ? `${where} is required: one of ${allowed}`
        : `${where} must be one of ${allowed}, not ${shown}`;
    }
    case 'invalid_union':
      return `${where} must be ${alternatives(issue)}, not ${shown}`;
    case 'too_small':
      return `${where} must ${bound(issue.origin, 'at least', issue.minimum)}, not ${lengthOf(issue) ?? shown}`;
    case 'too_big':
      return `${where} must ${bound(issue.origin, 'at most', issue.maximum)}, not ${lengthOf(issue) ?? shown}`;
    case 'invalid_key':
      // The path ends in the key itself, which is the input of the inner issues.
      return issue.issues
        .map((inner) => sentence(inner, schema, (steps) => [`${where} (field name)`, ...steps].join('.')))
        .join('; ');
    case 'invalid_format':
    case 'custom':
    default:
      return `${where} ${issue.message}`;
  }
}

/** Field names of the object that the path leads to. */
function fieldsAt(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let at: unknown = schema;
  for (const step of [...path, undefined]) {
    while (isWrapper(at)) at = at.unwrap();
    if (step === undefined) break;
    at = (at as { shape?: Record<PropertyKey, unknown> }).shape?.[step];
  }
  return Object.keys((at as { shape?: object } | undefined)?.shape ?? {});
}

/**
 * True if the path leads to, or below, a `writeOnly` field: a secret, never shown, not even to its
 * sender.
 */
function isSecret(schema: z.ZodType, path: readonly PropertyKey[]): boolean {
  let at: unknown = schema;
  for (const step of [...path, undefined]) {
    for (; at instanceof z.ZodType; at = at.unwrap()) {
      if (at.meta()?.['writeOnly'] === true) return true;
      if (!isWrapper(at)) break;
    }
    if (step !== undefined) at = (at as { shape?: Record<PropertyKey, unknown> } | undefined)?.shape?.[step];
  }
  return false;
}

function isWrapper(schema: unknown): schema is { unwrap(): unknown } {
  return typeof (schema as { unwrap?: unknown } | undefined)?.unwrap === 'function';
}

/**
 * Describes a union of plain types as a list. A fault within the right type is a separate issue of
 * that type.
 */
function alternatives(issue: Extract<Issue, { code: 'invalid_union' }>): string {
  const types = issue.errors.flatMap((options) =>
    options.flatMap((option) => (option.code === 'invalid_type' ? [article(option.expected)] : [])),
  );
  return `${types.slice(0, -1).join(', ')} or ${types.at(-1) ?? 'another value'}`;
}

function article(expected: string): string {
  switch (expected) {
    case 'int':
      return 'an integer';
    case 'object':
    case 'record':
      return 'an object';
    case 'array':
      return 'an array';
    default:
      return `a ${expected}`;
  }
}

function bound(origin: string, limit: string, amount: number | bigint): string {
  if (origin === 'array') return `have ${limit} ${amount} entr${Number(amount) === 1 ? 'y' : 'ies'}`;
  return origin === 'string'
    ? `be ${limit} ${amount} character${Number(amount) === 1 ? '' : 's'} long`
    : `be ${limit} ${amount}`;
}

function lengthOf({ origin, input }: { origin: string; input?: unknown }): string | null {
  if (Array.isArray(input)) return String(input.length);
  return origin === 'string' && typeof input === 'string' ? String(input.length) : null;
}

function show(input: unknown): string {
  // With an exponent, a number can be valid JSON and still too large for a double.
  if (typeof input === 'number') return Number.isFinite(input) ? String(input) : 'a number beyond 1.8e308';
  if (typeof input === 'string' || typeof input === 'boolean' || input === null) return shorten(JSON.stringify(input));
  return kindOf(input);
}

function kindOf(input: unknown): string {
  if (input === null) return 'null';
  return Array.isArray(input) ? 'an array' : article(typeof input);
}

function shorten(text: string): string {
  return text.length <= MAX_VALUE_CHARACTERS ? text : `${text.slice(0, MAX_VALUE_CHARACTERS)}...`;
}
