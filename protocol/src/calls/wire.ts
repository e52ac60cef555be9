// The calls of the guest daemon, as plain data. Its bundle inlines this module's values, so that it
// contains no schema library (guest/src/bundle.ts).
import { z } from 'zod';
import { CALLS } from './all.ts';
import { terminalOrder } from './connections.ts';
import type { CallSpec } from './define.ts';

/** Subset of JSON Schema used by the guest wire. */
export interface JsonSchema {
  readonly type?: string;
  readonly anyOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxItems?: number;
  /** Predicate of the message for a mismatched string. */
  readonly description?: string;
  /** Error code for a string that is too long. */
  readonly tooLong?: string;
}

/** A call as the guest daemon serves it. */
export interface WireCall extends Pick<
  CallSpec,
  'name' | 'method' | 'path' | 'form' | 'upgrade' | 'upload' | 'requestBytes'
> {
  readonly schemas: Readonly<Partial<Record<'params' | 'query' | 'body', JsonSchema>>>;
}

export function wireOf(call: CallSpec): WireCall {
  const { name, method, path, form, upgrade, upload, requestBytes, params, query, body } = call;
  const schemas = Object.entries({ params, query, body }).flatMap(([part, schema]) =>
    schema === undefined ? [] : [[part, jsonSchemaOf(schema)] as const],
  );
  return JSON.parse(
    JSON.stringify({ name, method, path, form, upgrade, upload, requestBytes, schemas: Object.fromEntries(schemas) }),
  ) as WireCall;
}

function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema);
  return rest as JsonSchema;
}

export const GUEST_WIRE: readonly WireCall[] = CALLS.filter(({ target }) => target !== 'host').map(wireOf);

export const TERMINAL_ORDER = jsonSchemaOf(terminalOrder);
