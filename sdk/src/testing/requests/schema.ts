// Validates values against the API's schemas. Throws for keywords that they do not use.
import { SCHEMAS } from '../../generated/service-tables.ts';

export interface Schema {
  readonly [keyword: string]: unknown;
}

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
]);
const PREFIX = '#/components/schemas/';

/** Returns the faults with their paths. Fills in defaults of missing fields. */
export function faultsIn(schema: Schema, value: unknown, where: string): string[] {
  const ref = schema['$ref'];
  if (typeof ref === 'string')
    return faultsIn((SCHEMAS as Readonly<Record<string, Schema>>)[ref.slice(PREFIX.length)] ?? {}, value, where);
  return Object.entries(schema).flatMap(([keyword, rule]) =>
    ANNOTATIONS.has(keyword) ? [] : faultsOf(keyword, rule, schema, value, where),
  );
}

function faultsOf(keyword: string, rule: unknown, schema: Schema, value: unknown, where: string): string[] {
  const unless = (fine: boolean, what: string): string[] => (fine ? [] : [`${where} must ${what}`]);
  switch (keyword) {
    case 'type':
      return unless(
        [rule].flat().some((type) => isOfType(value, String(type))),
        `be ${[rule].flat().join(' or ')}`,
      );
    case 'enum':
      return unless(
        (rule as unknown[]).includes(value),
        `be one of ${(rule as unknown[]).map((one) => JSON.stringify(one)).join(', ')}`,
      );
    case 'const':
      return unless(rule === value, `be ${JSON.stringify(rule)}`);
    case 'anyOf':
      return unless(
        (rule as Schema[]).some((one) => faultsIn(one, value, where).length === 0),
        'be one of the forms that are allowed',
      );
    case 'minimum':
      return unless(typeof value !== 'number' || value >= Number(rule), `be at least ${String(rule)}`);
    case 'maximum':
      return unless(typeof value !== 'number' || value <= Number(rule), `be at most ${String(rule)}`);
    case 'minLength':
      return unless(
        typeof value !== 'string' || value.length >= Number(rule),
        `have at least ${String(rule)} characters`,
      );
    case 'maxLength':
      return unless(
        typeof value !== 'string' || value.length <= Number(rule),
        `have at most ${String(rule)} characters`,
      );
    case 'pattern':
      return unless(typeof value !== 'string' || new RegExp(String(rule), 'u').test(value), `match ${String(rule)}`);
    case 'minItems':
      return unless(!Array.isArray(value) || value.length >= Number(rule), `have at least ${String(rule)} entries`);
    case 'maxItems':
      return unless(!Array.isArray(value) || value.length <= Number(rule), `have at most ${String(rule)} entries`);
    case 'items':
      return Array.isArray(value)
        ? value.flatMap((one: unknown, index) => faultsIn(rule as Schema, one, `${where}.${index}`))
        : [];
    case 'minProperties':
      return unless(
        !isObject(value) || Object.keys(value).length >= Number(rule),
        `have at least ${String(rule)} fields`,
      );
    case 'maxProperties':
      return unless(!isObject(value) || Object.keys(value).length <= Number(rule), `have at most ${String(rule)} keys`);
    case 'required':
      return isObject(value)
        ? (rule as string[]).flatMap((name) => (value[name] === undefined ? [`${where}.${name} is required`] : []))
        : [];
    case 'properties':
      return isObject(value)
        ? Object.entries(rule as Record<string, Schema>).flatMap(([name, one]) =>
            faultsOfField(one, value, name, where),
          )
        : [];
    case 'additionalProperties':
      return isObject(value) ? faultsOfOthers(rule, schema, value, where) : [];
    case 'propertyNames':
      return isObject(value)
        ? Object.keys(value).flatMap((name) => faultsIn(rule as Schema, name, `${where}.${name} (its name)`))
        : [];
    default:
      throw new Error(`the test server does not support the keyword ${keyword}`);
  }
}

function faultsOfField(schema: Schema, value: Record<string, unknown>, name: string, where: string): string[] {
  if (value[name] === undefined) {
    if (schema['default'] !== undefined) value[name] = schema['default'];
    return [];
  }
  return faultsIn(schema, value[name], `${where}.${name}`);
}

function faultsOfOthers(rule: unknown, schema: Schema, value: Record<string, unknown>, where: string): string[] {
  const named = schema['properties'] ?? {};
  const others = Object.keys(value).filter((name) => !Object.hasOwn(named, name));
  if (rule === false) return others.map((name) => `${where}.${name}: unknown field`);
  return typeof rule === 'object'
    ? others.flatMap((name) => faultsIn(rule as Schema, value[name], `${where}.${name}`))
    : [];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isObject(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}
