// Arguments of a tool: the parameters, query and body of its route in one object, with names in
// snake case. Names inside nested objects are the route's.
import { z } from 'zod';
import { schemaOf, type JsonSchema } from '../document/schemas.ts';
import { HOLD_SECONDS } from '../route/limits.ts';
import type { Route } from '../route/route.ts';
import { idempotencyKey } from '../route/text.ts';

type Part = 'params' | 'query' | 'body';

const PARTS = ['params', 'query', 'body'] as const satisfies readonly Part[];
/** Argument for the header `Idempotency-Key` of routes that accept one. */
export const IDEMPOTENCY_ARGUMENT = 'idempotency_key';
/** Argument for `Prefer: wait=N` of routes that hold their response. */
export const WAIT_ARGUMENT = 'wait_seconds';

export const waitSeconds = z
  .int()
  .min(HOLD_SECONDS.min)
  .max(HOLD_SECONDS.max)
  .describe('Waits this long for something new; without it, the response comes at once.');

export const idempotencyArgument = idempotencyKey.describe(
  'A repeat with the same key and arguments within a day returns the first resource.',
);

/** Where an argument goes in a request of the route. */
interface ArgumentPlace {
  part: Part;
  field: string;
}

/** Arguments of a tool, by name. */
export interface ToolArguments {
  places: ReadonlyMap<string, ArgumentPlace>;
  /** JSON Schema of all arguments. */
  schema: JsonSchema;
}

export function argumentsOf(route: Route): ToolArguments {
  const places = new Map<string, ArgumentPlace>();
  const properties: JsonSchema = {};
  const required: string[] = [];
  const definitions: JsonSchema = {};
  for (const part of PARTS) {
    const schema = route.request[part];
    if (schema === undefined) continue;
    const found = z.toJSONSchema(schema, { io: 'input' }) as PartSchema;
    Object.assign(definitions, found.$defs);
    for (const [field, property] of Object.entries(found.properties ?? {})) {
      const name = snakeCase(field);
      if (places.has(name)) throw new Error(`${route.name}: two fields become the argument ${name}`);
      places.set(name, { part, field });
      properties[name] = property;
      if (part === 'params' || found.required?.includes(field) === true) required.push(name);
    }
  }
  if (route.idempotent === true) properties[IDEMPOTENCY_ARGUMENT] = schemaOf(idempotencyArgument);
  if (route.holds === true) properties[WAIT_ARGUMENT] = schemaOf(waitSeconds);
  return {
    places,
    schema: {
      type: 'object',
      properties,
      ...(required.length === 0 ? {} : { required }),
      additionalProperties: false,
      ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions }),
    },
  };
}

interface PartSchema {
  properties?: Record<string, unknown>;
  required?: string[];
  $defs?: JsonSchema;
}

/**
 * JSON Schema of the response of a route: open, because fields may be added, and without
 * descriptions, which the OpenAPI document has.
 */
export function outputOf({ response }: Route): JsonSchema {
  const { $schema: _, ...schema } = z.toJSONSchema(response.body, {
    override: ({ jsonSchema }) => {
      delete jsonSchema.description;
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  });
  // MCP requires `type: object` at the root.
  const { $ref, $defs = {}, ...root } = schema as JsonSchema & { $ref?: string; $defs?: Record<string, JsonSchema> };
  if ($ref === undefined) return Object.keys($defs).length === 0 ? root : { ...root, $defs };

  const { [$ref.slice('#/$defs/'.length)]: named, ...others } = $defs;
  return { ...named, ...(Object.keys(others).length === 0 ? {} : { $defs: others }) };
}

/** `sandboxId` becomes `sandbox_id`. */
function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
