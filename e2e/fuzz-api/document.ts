// Reads openapi.json, and nothing else of the project, for the fuzzer: operations with resolved
// references, and validators of responses.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

export interface Schema {
  [keyword: string]: unknown;
}

export interface Parameter {
  name: string;
  place: 'path' | 'query' | 'header';
  required: boolean;
  schema: Schema;
}

export interface Operation {
  id: string;
  method: string;
  /** Path of the URL, with the server's prefix and `{names}`. */
  path: string;
  parameters: Parameter[];
  body: { required: boolean; schema: Schema; isValid: ValidateFunction } | null;
  /** Names of the security schemes; empty: none is needed. */
  credentials: string[];
  /** Validators of the documented responses, by status. */
  answers: ReadonlyMap<number, ValidateFunction>;
}

type Json = Record<string, unknown>;

/** Parses the operations of a document. Throws for a dangling or circular reference. */
export function readOperations(text: string): Operation[] {
  const document = JSON.parse(text) as Json;
  const ajv = new Ajv2020({ strict: false, allErrors: false, validateFormats: false });
  const operations: Operation[] = [];
  for (const [path, item] of Object.entries(document['paths'] as Record<string, Json>)) {
    const servers = (item['servers'] ?? document['servers']) as { url: string }[];
    const prefix = new URL(servers[0]?.url ?? '', 'http://service').pathname.replace(/\/$/, '');
    for (const [method, value] of Object.entries(item)) {
      if (method === 'servers' || method === 'parameters') continue;
      const operation = resolve(document, value, []) as Json;
      operations.push({
        id: String(operation['operationId']),
        method: method.toUpperCase(),
        path: prefix + path,
        parameters: ((operation['parameters'] ?? []) as Json[]).map((one) => ({
          name: String(one['name']),
          place: one['in'] as Parameter['place'],
          required: one['required'] === true,
          schema: one['schema'] as Schema,
        })),
        body: bodyOf(operation['requestBody'] as Json | undefined, ajv),
        credentials: [...new Set(((operation['security'] ?? []) as Json[]).flatMap((one) => Object.keys(one)))],
        answers: new Map(
          Object.entries(operation['responses'] as Record<string, Json>).map(([status, answer]) => [
            Number(status),
            ajv.compile(closed(schemaOf(answer) ?? {})),
          ]),
        ),
      });
    }
  }
  return operations;
}

/** The committed document. */
export function committedDocument(): string {
  return readFileSync(join(import.meta.dirname, '../../openapi.json'), 'utf8');
}

function bodyOf(requestBody: Json | undefined, ajv: Ajv2020): Operation['body'] {
  const schema = requestBody === undefined ? undefined : schemaOf(requestBody);
  return schema === undefined
    ? null
    : { required: requestBody?.['required'] === true, schema, isValid: ajv.compile(schema) };
}

function schemaOf(part: Json): Schema | undefined {
  return (part['content'] as Record<string, { schema: Schema }> | undefined)?.['application/json']?.schema;
}

/** A part of the document with its references replaced by their targets. */
function resolve(document: Json, part: unknown, within: readonly string[]): unknown {
  if (Array.isArray(part)) return part.map((one) => resolve(document, one, within));
  if (typeof part !== 'object' || part === null) return part;
  const { $ref, ...beside } = part as Json;
  if (typeof $ref === 'string') {
    if (within.includes($ref)) throw new Error(`${$ref} leads to itself`);
    let found: unknown = document;
    for (const step of $ref.slice(2).split('/')) found = (found as Json | undefined)?.[step];
    if (found === undefined) throw new Error(`${$ref} leads nowhere`);
    return { ...(resolve(document, found, [...within, $ref]) as Json), ...(resolve(document, beside, within) as Json) };
  }
  return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, resolve(document, value, within)]));
}

/** Forbids unnamed properties: the document must describe everything the service returns. */
function closed<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map((one: unknown) => closed(one)) as T;
  if (typeof schema !== 'object' || schema === null || 'allOf' in schema) return schema;
  const entries = Object.entries(schema).map(([key, value]): [string, unknown] => {
    if (key === 'enum' || key === 'const' || key === 'examples' || key === 'default') return [key, value];
    if (key === 'properties')
      return [key, Object.fromEntries(Object.entries(value as Json).map(([name, one]) => [name, closed(one)]))];
    return [key, closed(value)];
  });
  const open = 'properties' in schema && !('additionalProperties' in schema);
  return { ...Object.fromEntries(entries), ...(open ? { additionalProperties: false } : {}) } as T;
}
