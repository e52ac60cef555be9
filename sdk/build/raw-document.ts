// OpenAPI document of the raw client: every route except WebSockets and raw bytes, which the
// generated client would keep in memory; simplified for the generator.
import { fullDocument } from '@berth/contract/document/openapi.ts';
import { ERRORS } from '@berth/contract/route/errors.ts';
import { ROUTES } from '@berth/contract/routes.ts';

type Json = Record<string, unknown>;

/**
 * Placeholder in an enumeration for values of later versions; {@link openEnumerations} replaces it
 * by `(string & {})`.
 */
const FURTHER = '__further__';
const SCHEMAS = '#/components/schemas/';

export function rawDocument(): Json {
  const document = JSON.parse(JSON.stringify(fullDocument())) as Json & {
    paths: Record<string, Record<string, Json>>;
    components: { schemas: Record<string, Json> };
  };
  for (const { websocket, upload, response, path } of ROUTES) {
    if (websocket === true || upload === true || response.bytes === true)
      delete document.paths[path.replace(/^\/v1/, '')];
  }
  for (const [path, item] of Object.entries(document.paths)) {
    // The base URL of the client ends before `/v1`.
    delete item['servers'];
    delete document.paths[path];
    document.paths[path === '/health' ? path : `/v1${path}`] = item;
  }
  document['servers'] = [{ url: new URL((document['servers'] as { url: string }[])[0]?.url ?? '').origin }];
  const { schemas } = document.components;
  const asked = reachable(
    Object.values(document.paths).flatMap((item) =>
      Object.values(item).map((one) => [one['requestBody'], one['parameters']]),
    ),
    schemas,
  );
  for (const item of Object.values(document.paths)) {
    for (const operation of Object.values(item)) {
      delete operation['security'];
      const responses = operation['responses'] as Record<string, Json>;
      const success = Object.entries(responses).find(([status]) => status < '300');
      // The SDK throws all errors as one class.
      operation['responses'] = {
        ...(success === undefined
          ? {}
          : { [success[0]]: { ...(withFurther(success[1], schemas) as Json), headers: undefined } }),
        default: {
          description: 'A failure.',
          content: { 'application/json': { schema: { $ref: `${SCHEMAS}ErrorEnvelope` } } },
        },
      };
    }
  }
  for (const [name, schema] of Object.entries(schemas))
    if (schema['type'] === 'object' && !asked.has(name)) schemas[name] = withFurther(schema, schemas) as Json;
  schemas['ErrorCode'] = {
    type: 'string',
    description: 'Codes of errors. Further ones will come.',
    enum: Object.keys(ERRORS),
  };
  const envelope = schemas['ErrorEnvelope'] as { properties: { error: { properties: { code: Json } } } };
  envelope.properties.error.properties.code = { anyOf: [{ $ref: `${SCHEMAS}ErrorCode` }, { enum: [FURTHER] }] };
  delete (document.components as Json)['responses'];
  delete (document.components as Json)['headers'];
  delete (document.components as Json)['securitySchemes'];
  return JSON.parse(JSON.stringify(document)) as Json;
}

/** Opens the enumerations of responses in generated types. */
export function openEnumerations(text: string): string {
  return text.replaceAll(`'${FURTHER}'`, '(string & {})');
}

/** Adds the placeholder to each enumeration of a response schema. */
function withFurther(part: unknown, schemas: Record<string, Json>): unknown {
  if (Array.isArray(part)) return part.map((one: unknown) => withFurther(one, schemas));
  if (typeof part !== 'object' || part === null) return part;
  const schema = part as Json;
  const { $ref, description } = schema;
  const told = description === undefined ? {} : { description };
  if (typeof $ref === 'string' && schemas[$ref.slice(SCHEMAS.length)]?.['enum'] !== undefined)
    return { ...told, anyOf: [{ $ref }, { enum: [FURTHER] }] };
  if (Array.isArray(schema['enum'])) return { ...schema, enum: [...(schema['enum'] as unknown[]), FURTHER] };
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, key === 'example' ? value : withFurther(value, schemas)]),
  );
}

/** Names of schemas reachable through references. */
export function reachable(parts: unknown, schemas: Record<string, Json>, found = new Set<string>()): Set<string> {
  for (const [, name = ''] of JSON.stringify(parts).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
    if (found.has(name)) continue;
    found.add(name);
    reachable(schemas[name], schemas, found);
  }
  return found;
}
