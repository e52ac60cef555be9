// The schemas of a document: those of the routes as JSON Schema, the named ones among them as
// components. Knows nothing of operations.
import { z } from 'zod';

/** A JSON Schema, or any object within one. */
export interface JsonSchema {
  [keyword: string]: unknown;
}

/** `output`: what the service answers. `input`: what it takes. */
export type Direction = 'output' | 'input';

const REF = '#/$defs/';
const COMPONENT_REF = '#/components/schemas/';

/**
 * Gathers the named schemas (`.meta({ id })`) of all that goes through {@link of}. Answers are
 * open: clients must take fields that they do not know, so what the service promises not to add is
 * not said. Give the answers first: a name that means something else in a request gets another one
 * there.
 */
export class DocumentSchemas {
  readonly #components = new Map<string, JsonSchema>();

  /** The schema as it stands in the document. */
  of(schema: z.ZodType, direction: Direction): JsonSchema {
    const { $schema: _, $defs = {}, ...root } = z.toJSONSchema(schema, { io: direction }) as JsonSchema;
    const named = Object.entries($defs as Record<string, JsonSchema>);
    const names = this.#namesFor(named, direction);
    for (const [id, one] of named) this.#components.set(names.get(id) ?? id, written(one, direction, names));
    return written(root, direction, names);
  }

  /**
   * An object that has no name gets the given one; anything else stays as it is. Throws when the
   * name is taken.
   */
  named(name: string, schema: JsonSchema): JsonSchema {
    return component(this.#components, name, schema);
  }

  /**
   * By name, in the order of the names; an object within another is one of its own, named after the
   * other and its place there.
   */
  components(): Record<string, JsonSchema> {
    const all = new Map<string, JsonSchema>();
    for (const [name, schema] of this.#components) put(all, name, schema);
    return Object.fromEntries([...all].toSorted(([one], [other]) => (one < other ? -1 : 1)));
  }

  /**
   * Names of the given schemas: their ids, and others for those that are something else already or
   * hold such a one.
   */
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

/** An object as a component, for generated clients have no type for what has no name. */
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
  if (all.has(name)) throw new Error(`two schemas would be ${name}: give one of them an id`);
  all.set(name, schema);
  const { properties } = schema as { properties?: Record<string, JsonSchema> };
  if (properties === undefined) return;
  const parts = Object.entries(properties).map(([key, part]) => [key, component(all, name + capitalized(key), part)]);
  all.set(name, { ...schema, properties: Object.fromEntries(parts) as JsonSchema });
}

/** For the names of schemas, which begin with a capital letter. */
export function capitalized(name: string): string {
  return name.slice(0, 1).toUpperCase() + name.slice(1);
}

/**
 * A part of a schema with the document's references, without what only says how the schemas were
 * made.
 */
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
    // What every whole number in JSON is bound by.
    if (value === Number.MAX_SAFE_INTEGER || value === Number.MIN_SAFE_INTEGER) return [];
    return value === undefined ? [] : [[keyword, written(value, direction, names)]];
  });
  return Object.fromEntries(entries) as T;
}
