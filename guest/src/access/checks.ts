// Validates values against the schemas of the guest wire (protocol/src/calls/wire.ts), without a
// schema library in the VM. Supports only the parts of JSON Schema that these use.
import type { JsonSchema } from '@berth/protocol/calls/wire.ts';

/**
 * A value that violates the wire. The message names the field, never its value. `code`: the
 * schema's error code, if any.
 */
export class BodyRefused extends Error {
  override readonly name = 'BodyRefused';
  readonly code: string | undefined;

  constructor(message: string, code?: string) {
    super(message);
    this.code = code;
  }
}

/**
 * Returns the value. `isText`: it comes from a query, whose integers are text. Throws {@link
 * BodyRefused}.
 */
export function checkValue(schema: JsonSchema, value: unknown, name: string, isText = false): unknown {
  if (schema.anyOf !== undefined) return checkUnion(schema.anyOf, value, name, isText);
  if (schema.const !== undefined || schema.enum !== undefined) {
    const known = schema.enum ?? [schema.const];
    if (!known.includes(value)) throw new BodyRefused(`${name} must be ${known.join(', ')}`);
    return value;
  }
  switch (schema.type) {
    case 'object':
      return checkObject(schema, value, name, isText);
    case 'string':
      return checkText(schema, value, name);
    case 'integer':
      return checkInteger(schema, isText ? numberOf(value) : value, name);
    case 'array': {
      const { maxItems = Infinity, items = {} } = schema;
      if (!Array.isArray(value) || value.length > maxItems)
        throw new BodyRefused(`${name} must be a list of at most ${maxItems} items`);
      return value.map((item, at) => checkValue(items, item, `${name}[${at}]`));
    }
    case 'number':
      if (typeof value !== 'number') throw new BodyRefused(`${name} must be a number`);
      return value;
    case 'boolean':
      if (typeof value !== 'boolean') throw new BodyRefused(`${name} must be true or false`);
      return value;
    case 'null':
      if (value !== null) throw new BodyRefused(`${name} must be null`);
      return null;
    default:
      throw new TypeError(`${name} has a schema of the unknown type ${schema.type}`);
  }
}

/** Reports the error of the alternative whose fields the value has. */
function checkUnion(alternatives: readonly JsonSchema[], value: unknown, name: string, isText: boolean): unknown {
  const refusals: BodyRefused[] = [];
  for (const schema of alternatives) {
    try {
      return checkValue(schema, value, name, isText);
    } catch (error) {
      if (!(error instanceof BodyRefused)) throw error;
      refusals.push(error);
    }
  }
  throw refusals.find(({ message }) => !message.includes('unknown field')) ?? refusals[0];
}

function checkObject(
  { properties = {}, required = [] }: JsonSchema,
  value: unknown,
  name: string,
  isText: boolean,
): object {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new BodyRefused(`${name} must be an object`);

  const fields = value as Readonly<Record<string, unknown>>;
  const unknown = Object.keys(fields).find((field) => !Object.hasOwn(properties, field));
  if (unknown !== undefined) {
    const known = Object.keys(properties).join(', ');
    throw new BodyRefused(`${name} has an unknown field ${JSON.stringify(unknown)}; it takes ${known}`);
  }
  return Object.fromEntries(
    Object.entries(properties)
      .filter(([field]) => required.includes(field) || fields[field] !== undefined)
      .map(([field, schema]) => [field, checkValue(schema, fields[field], field, isText)]),
  );
}

function checkText(schema: JsonSchema, value: unknown, name: string): string {
  const { minLength = 0, maxLength = Infinity, pattern, description, tooLong } = schema;
  const length = `must be a string of ${minLength} to ${maxLength} characters`;
  if (typeof value === 'string' && value.length > maxLength) throw new BodyRefused(`${name} ${length}`, tooLong);

  if (typeof value !== 'string' || value.length < minLength || !new RegExp(pattern ?? '').test(value))
    throw new BodyRefused(`${name} ${description ?? length}`);

  return value;
}

function checkInteger({ minimum = 0, maximum = 0 }: JsonSchema, value: unknown, name: string): number {
  if (!Number.isSafeInteger(value) || (value as number) < minimum || (value as number) > maximum)
    throw new BodyRefused(`${name} must be a whole number from ${minimum} to ${maximum}`);

  return value as number;
}

function numberOf(text: unknown): unknown {
  return typeof text === 'string' && /^\d{1,16}$/.test(text) ? Number(text) : text;
}
