// The OpenAPI document: complete, equal to the committed file, and valid for a linter.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { z } from 'zod';
import { errorEnvelope, ERRORS } from '../../src/route/errors.ts';
import { fullDocument, publishedDocument, type OpenApiDocument } from '../../src/document/openapi.ts';
import { DocumentSchemas, type JsonSchema } from '../../src/document/schemas.ts';
import { inOrder, tagOf } from '../../src/document/tags.ts';
import { errorsOf, type Route } from '../../src/route/route.ts';
import { ROUTES } from '../../src/routes.ts';

const CHECKOUT = join(import.meta.dirname, '../../..');
const published = ROUTES.filter((route) => route.published);

interface Response {
  $ref?: string;
  content?: Record<string, { schema: JsonSchema }>;
}
interface Operation {
  operationId: string;
  tags: string[];
  parameters?: { name?: string; in?: string; $ref?: string }[];
  requestBody?: { required: boolean; content: Record<string, { schema: JsonSchema; example?: unknown }> };
  responses: Record<string, Response>;
}

function operationIn(document: OpenApiDocument, { path, method }: Route): Operation {
  const operation = document.paths[path.replace(/^\/v1/, '')]?.[method.toLowerCase()];
  assert.ok(operation !== undefined, `${method} ${path}`);
  return operation as Operation;
}

interface NarrowedEnvelope {
  allOf: [unknown, { properties: { error: { properties: { code: { enum: string[] } } } } }];
}

/** Error codes of a status in the document. */
function codesAt(document: OpenApiDocument, response: Response): string[] {
  const shared = document.components['responses'] as Record<string, Response>;
  const found = response.$ref === undefined ? response : shared[response.$ref.split('/').at(-1) ?? ''];
  const schema = found?.content?.['application/json']?.schema as NarrowedEnvelope | undefined;
  assert.ok(schema !== undefined);
  return schema.allOf[1].properties.error.properties.code.enum;
}

test('openapi.json matches the contract (npm run docs:openapi)', () => {
  const committed: unknown = JSON.parse(readFileSync(join(CHECKOUT, 'openapi.json'), 'utf8'));
  assert.deepEqual(committed, JSON.parse(JSON.stringify(publishedDocument())));
});

test('the document has exactly the published routes below /v1; the full document has every route', () => {
  for (const [document, routes] of [
    [publishedDocument(), published],
    [fullDocument(), ROUTES],
  ] as const) {
    assert.match(document.openapi, /^3\.1\./);
    assert.ok((document['servers'] as { url: string }[]).every(({ url }) => url.endsWith('/v1')));
    const operations = Object.values(document.paths).flatMap((path) =>
      Object.entries(path).flatMap(([key, one]) => (key === 'servers' ? [] : [(one as Operation).operationId])),
    );
    assert.deepEqual(operations.toSorted(), routes.map(({ name }) => name).toSorted());
  }
});

for (const route of ROUTES) {
  test(`${route.name}: the full document lists its success and every error status with its codes`, () => {
    const document = fullDocument();
    const { responses } = operationIn(document, route);
    const statuses = [...new Set([...errorsOf(route)].map((code) => ERRORS[code].status))];
    assert.deepEqual(
      Object.keys(responses).map(Number),
      [route.response.status, ...('ranges' in route ? [206] : []), ...statuses].toSorted((a, b) => a - b),
    );
    for (const status of statuses) {
      const codes = [...errorsOf(route)].filter((code) => ERRORS[code].status === status);
      assert.deepEqual(codesAt(document, responses[String(status)] ?? {}).toSorted(), codes.toSorted());
    }
  });
}

test('a held route documents Prefer: wait and the header of its response', () => {
  const document = fullDocument();
  for (const route of ROUTES.filter(({ holds }) => holds === true)) {
    const { parameters, responses } = operationIn(document, route);
    assert.ok(JSON.stringify(parameters).includes('/PreferHold"'), route.name);
    assert.ok(JSON.stringify(responses['200']).includes('/PreferenceApplied"'), route.name);
  }
});

test('includedMachineHours may be null in every schema, and its description says when', () => {
  const described: string[] = [];
  for (const [name, schema] of Object.entries(fullDocument().components.schemas)) {
    const { includedMachineHours: hours } = (schema as { properties?: Record<string, JsonSchema> }).properties ?? {};
    if (hours === undefined) continue;
    described.push(name);
    assert.ok(
      (hours['anyOf'] as JsonSchema[] | undefined)?.some(({ type }) => type === 'null'),
      name,
    );
    assert.match(String(hours['description']), /null: unlimited/, name);
  }
  assert.deepEqual(described.toSorted(), ['OrgUsage', 'SubscriptionPlan', 'UsageGuardrails']);
});

test('the documented error envelope has the fields of the real one', () => {
  const { ErrorEnvelope: envelope } = fullDocument().components.schemas;
  const { error } = (envelope as { properties: Record<string, { properties: object }> }).properties;
  assert.deepEqual(Object.keys(error?.properties ?? {}), Object.keys(errorEnvelope.shape.error.shape));
});

/** Paths of schemas with rules that JSON Schema cannot express and without a description. */
function undescribed(schema: z.ZodType, path: string): string[] {
  const def = schema.def as unknown as {
    type: string;
    checks?: { _zod: { def: { check: string } } }[];
    shape?: Record<string, z.ZodType>;
    innerType?: z.ZodType;
    element?: z.ZodType;
    valueType?: z.ZodType;
    options?: z.ZodType[];
    in?: z.ZodType;
  };
  const hidden = def.type === 'pipe' || (def.checks ?? []).some((check) => check._zod.def.check === 'custom');
  const told = typeof schema.meta()?.['description'] === 'string';
  // A description of the enclosing schema counts, too.
  if (told) return [];
  const inner = [def.innerType, def.element, def.valueType, ...(def.options ?? [])].filter((one) => one !== undefined);
  return [
    ...(hidden ? [path] : []),
    ...inner.flatMap((one) => undescribed(one, path)),
    ...Object.entries(def.shape ?? {}).flatMap(([name, one]) => undescribed(one, `${path}.${name}`)),
  ];
}

test('a rule hidden in a refine, check or transform of a request has a description', () => {
  const all = ROUTES.flatMap(({ name, request }) =>
    Object.entries(request).flatMap(([place, schema]) => undescribed(schema as z.ZodType, `${name}.${place}`)),
  );
  assert.deepEqual(all, []);
});

test('a hidden rule without a description is reported', () => {
  const even = z.number().refine((value) => value % 2 === 0);
  assert.deepEqual(undescribed(z.object({ a: z.array(even).optional(), b: even.describe('Even.') }), 'body'), [
    'body.a',
  ]);
});

test('the example of each published route matches its schemas', () => {
  for (const { name, example, request, response } of published) {
    if (example === undefined) continue;
    response.body.parse(example.answer);
    if (example.body !== undefined) request.body?.parse(example.body);
    const query = Object.entries(example.query ?? {}).map(([key, value]) => [key, String(value)]);
    request.query?.parse(Object.fromEntries(query));
    assert.equal(
      request.body !== undefined && !request.body.safeParse(undefined).success,
      example.body !== undefined,
      name,
    );
  }
});

test('a schema id with different request and response shapes gets two names', () => {
  const schemas = new DocumentSchemas();
  const inner = z.object({ size: z.string().transform(Number).pipe(z.number()) }).meta({ id: 'TestInner' });
  const outer = z.object({ inner }).meta({ id: 'TestOuter' });
  assert.deepEqual(schemas.of(outer, 'output'), { $ref: '#/components/schemas/TestOuter' });
  assert.deepEqual(schemas.of(outer, 'input'), { $ref: '#/components/schemas/TestOuterInput' });
  assert.deepEqual(Object.keys(schemas.components()), ['TestInner', 'TestInnerInput', 'TestOuter', 'TestOuterInput']);
  assert.deepEqual(schemas.components()['TestOuterInput']?.['properties'], {
    inner: { $ref: '#/components/schemas/TestInnerInput' },
  });
});

/** Places of unnamed objects within the part. */
function nameless(part: unknown, place: string, named = false): string[] {
  if (typeof part !== 'object' || part === null) return [];
  const here = !named && 'properties' in part && 'type' in part ? [place] : [];
  return [
    ...here,
    ...Object.entries(part).flatMap(([key, one]) => (key === 'example' ? [] : nameless(one, `${place}/${key}`))),
  ];
}

test('every object of a request or response has a name, so that generated clients have a type', () => {
  for (const [document, routes] of [
    [publishedDocument(), published],
    [fullDocument(), ROUTES],
  ] as const) {
    const { ErrorEnvelope: _, ...schemas } = document.components.schemas;
    const within = Object.entries(schemas).flatMap(([name, schema]) => nameless(schema, name, true));
    const around = routes.flatMap((route) => {
      const { requestBody, responses } = operationIn(document, route);
      return [
        ...nameless(requestBody, `${route.name} request`),
        ...nameless(responses[route.response.status], `${route.name} answer`),
      ];
    });
    assert.deepEqual([...within, ...around], []);
  }
});

test('a nested object is named after its parent and property; a duplicate name throws', () => {
  const schemas = new DocumentSchemas();
  const inner = z.object({ size: z.number() });
  const outer = z.object({ first: inner, maybe: inner.nullable(), many: z.array(inner) });
  assert.deepEqual(schemas.named('TestMade', schemas.of(outer, 'output')), { $ref: '#/components/schemas/TestMade' });
  assert.deepEqual(Object.keys(schemas.components()), ['TestMade', 'TestMadeFirst', 'TestMadeMany', 'TestMadeMaybe']);
  assert.deepEqual(schemas.named('TestList', schemas.of(z.array(z.string()), 'output')), {
    type: 'array',
    items: { type: 'string' },
  });
  assert.throws(() => schemas.named('TestMade', schemas.of(inner, 'output')), /cannot name two schemas TestMade/);
});

test('a route without a known tag gets a new one, after the known tags', () => {
  const tags = [
    '/v1/orgs/{orgId}/widget-sets/{id}',
    '/v1/sandboxes/{sandboxId}/exec',
    '/v1/sandboxes/{sandboxId}/files',
    '/v1/me',
  ].map(tagOf);
  assert.deepEqual(
    inOrder(tags).map(({ name }) => name),
    ['Identity', 'Sandboxes', 'Files', 'Widget sets'],
  );
});

test("openapi.json passes Redocly's recommended lint rules without a warning", () => {
  const redocly = createRequire(import.meta.url).resolve('@redocly/cli/bin/cli.js');
  const linted = spawnSync(
    process.execPath,
    [redocly, 'lint', '--extends', 'recommended-strict', '--format', 'json', 'openapi.json'],
    {
      cwd: CHECKOUT,
      encoding: 'utf8',
      // Disables update checks and telemetry over the network.
      env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    },
  );
  assert.equal(linted.status, 0, linted.stdout + linted.stderr);
  assert.deepEqual((JSON.parse(linted.stdout) as { totals: unknown }).totals, { errors: 0, warnings: 0, ignored: 0 });
});
