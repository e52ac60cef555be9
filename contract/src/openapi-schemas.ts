// The schemas of a document: those of the routes as JSON Schema, the named ones among them as components. Knows nothing of operations.
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
 * Gathers the named schemas (`.meta({ id })`) of all that goes through {@link of}. Answers are open: clients must take fields that they do not know, so what the
 * service promises not to add is not said. Give the answers first: a name that means something else in a request gets another one there.
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

  /** By name, in the order of the names. */
  components(): Record<string, JsonSchema> {
    return Object.fromEntries([...this.#components].toSorted(([one], [other]) => (one < other ? -1 : 1)));
  }

  /** Names of the given schemas: their ids, and others for those that are something else already or hold such a one. */
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

/** A part of a schema with the document's references, without what only says how the schemas were made. */
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
