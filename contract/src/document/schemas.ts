// Converts the schemas of routes to JSON Schema, and collects named schemas as components.
import { z } from 'zod';

/** A JSON Schema, or any object within one. */
export interface JsonSchema {
  [keyword: string]: unknown;
}

/** `output`: responses. `input`: requests. */
type Direction = 'output' | 'input';

/** JSON Schema of one value, without references. */
export function schemaOf(value: z.ZodType): JsonSchema {
  const { $schema: _, ...schema } = z.toJSONSchema(value) as JsonSchema;
  return schema;
}

const REF = '#/$defs/';
const COMPONENT_REF = '#/components/schemas/';

/**
 * Collects the named schemas (`.meta({ id })`) of everything passed to {@link of}. Response schemas
 * are open (no `additionalProperties: false`): clients must accept unknown fields. Pass responses
 * first: a request schema with the same id but another shape gets another name.
 */
export class DocumentSchemas {
  readonly #components = new Map<string, JsonSchema>();

  /** Converts a schema, with references to components. */
  of(schema: z.ZodType, direction: Direction): JsonSchema {
    const { $schema: _, $defs = {}, ...root } = z.toJSONSchema(schema, { io: direction }) as JsonSchema;
    const named = Object.entries($defs as Record<string, JsonSchema>);
    const names = this.#namesFor(named, direction);
    for (const [id, one] of named) this.#components.set(names.get(id) ?? id, written(one, direction, names));
    return written(root, direction, names);
  }

  /** Makes an unnamed object a component with the given name. Throws if the name is in use. */
  named(name: string, schema: JsonSchema): JsonSchema {
    return component(this.#components, name, schema);
  }

  /** All components, sorted by name. Nested objects are named after their parent and property. */
  components(): Record<string, JsonSchema> {
    const all = new Map<string, JsonSchema>();
    for (const [name, schema] of this.#components) put(all, name, schema);
    return Object.fromEntries([...all].toSorted(([one], [other]) => (one < other ? -1 : 1)));
  }

  /** Component names: the ids, or a suffixed id if a different component has that id. */
  #namesFor(named: readonly (readonly [string, JsonSchema])[], direction: Direction): ReadonlyMap<string, string> {
    const names = new Map<string, string>();
    for (let before = -1; names.size > before;) {
      before = names.size;
      for (const [id, schema] of named) {
        const known = this.#components.get(id);
        const same = known === undefined || JSON.stringify(known) === JSON.stringify(written(schema, direction, names));
        if (!same) names.set(id, direction === 'input' ? `${id}Input` : `${id}Answer`);
      }
    }
    return names;
  }
}

/** Makes objects components: generated clients have no type for an unnamed object. */
function component(all: Map<string, JsonSchema>, name: string, part: JsonSchema): JsonSchema {
  if ('properties' in part) {
    put(all, name, part);
    return { $ref: COMPONENT_REF + name };
  }
  const { anyOf, items } = part as { anyOf?: JsonSchema[]; items?: JsonSchema };
  return {
    ...part,
    ...(anyOf === undefined ? {} : { anyOf: anyOf.map((one) => component(all, name, one)) }),
    ...(items === undefined ? {} : { items: component(all, name, items) }),
  };
}

function put(all: Map<string, JsonSchema>, name: string, schema: JsonSchema): void {
  if (all.has(name)) throw new Error(`cannot name two schemas ${name}: give one of them an id`);
  all.set(name, schema);
  const { properties } = schema as { properties?: Record<string, JsonSchema> };
  if (properties === undefined) return;
  const parts = Object.entries(properties).map(([key, part]) => [key, component(all, name + capitalized(key), part)]);
  all.set(name, { ...schema, properties: Object.fromEntries(parts) as JsonSchema });
}

export function capitalized(name: string): string {
  return name.slice(0, 1).toUpperCase() + name.slice(1);
}

/** Copies a part of a schema with the document's references, without artefacts of zod. */
function written<T>(part: T, direction: Direction, names: ReadonlyMap<string, string>): T {
  if (Array.isArray(part)) return part.map((one: unknown) => written(one, direction, names)) as T;
  if (typeof part !== 'object' || part === null) return part;
  const entries = Object.entries(part).flatMap(([keyword, value]): [string, unknown][] => {
    if (keyword === '$ref') {
      const id = String(value).slice(REF.length);
      return [[keyword, COMPONENT_REF + (names.get(id) ?? id)]];
    }
    if (keyword === 'id' && '$ref' in part) return [];
    if (direction === 'output' && keyword === 'additionalProperties' && value === false) return [];
    // Bounds of every integer in JSON.
    if (value === Number.MAX_SAFE_INTEGER || value === Number.MIN_SAFE_INTEGER) return [];
    return value === undefined ? [] : [[keyword, written(value, direction, names)]];
  });
  return Object.fromEntries(entries) as T;
}
