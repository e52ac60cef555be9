// The document as it follows from the contract: complete, in the file that is committed, and by the
// rules of a linter.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { z } from 'zod';
import { ERRORS } from '../../src/route/errors.ts';
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

/** The codes that the document gives for a status. */
function codesAt(document: OpenApiDocument, response: Response): string[] {
  const shared = document.components['responses'] as Record<string, Response>;
  const found = response.$ref === undefined ? response : shared[response.$ref.split('/').at(-1) ?? ''];
  const schema = found?.content?.['application/json']?.schema as NarrowedEnvelope | undefined;
  assert.ok(schema !== undefined);
  return schema.allOf[1].properties.error.properties.code.enum;
}

test('openapi.json is what the contract says; npm run docs:openapi writes it', () => {
  const committed: unknown = JSON.parse(readFileSync(join(CHECKOUT, 'openapi.json'), 'utf8'));
  assert.deepEqual(committed, JSON.parse(JSON.stringify(publishedDocument())));
});

test('the document has the published routes and no other, below a server whose URL ends in /v1; the full one has all', () => {
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
  test(`${route.name}: the full document gives its success, each status of its errors, and at each the codes that occur`, () => {
    const document = fullDocument();
    const { responses } = operationIn(document, route);
    const statuses = [...new Set([...errorsOf(route)].map((code) => ERRORS[code].status))];
    assert.deepEqual(
      Object.keys(responses).map(Number),
      [route.response.status, ...statuses].toSorted((a, b) => a - b),
    );
    for (const status of statuses) {
      const codes = [...errorsOf(route)].filter((code) => ERRORS[code].status === status);
      assert.deepEqual(codesAt(document, responses[String(status)] ?? {}).toSorted(), codes.toSorted());
    }
  });
}

/** Paths of schemas that hold rules which JSON Schema does not show, with nothing said of them. */
function untold(schema: z.ZodType, path: string): string[] {
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
  // Said of what stands around it as well.
  if (told) return [];
  const inner = [def.innerType, def.element, def.valueType, ...(def.options ?? [])].filter((one) => one !== undefined);
  return [
    ...(hidden ? [path] : []),
    ...inner.flatMap((one) => untold(one, path)),
    ...Object.entries(def.shape ?? {}).flatMap(([name, one]) => untold(one, `${path}.${name}`)),
  ];
}

test('what a refine, a check or a transform of a request hides is said in a description', () => {
  const all = ROUTES.flatMap(({ name, request }) =>
    Object.entries(request).flatMap(([place, schema]) => untold(schema as z.ZodType, `${name}.${place}`)),
  );
  assert.deepEqual(all, []);
});

test('a rule that nothing is said of is noticed', () => {
  const even = z.number().refine((value) => value % 2 === 0);
  assert.deepEqual(untold(z.object({ a: z.array(even).optional(), b: even.describe('Even.') }), 'body'), ['body.a']);
});

test("each published route's example is within its schemas", () => {
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

test('a name that means something else in a request than in an answer is two names', () => {
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

/** Places within the part at which an object stands that no name leads to. */
function nameless(part: unknown, place: string, named = false): string[] {
  if (typeof part !== 'object' || part === null) return [];
  const here = !named && 'properties' in part && 'type' in part ? [place] : [];
  return [
    ...here,
    ...Object.entries(part).flatMap(([key, one]) => (key === 'example' ? [] : nameless(one, `${place}/${key}`))),
  ];
}

test('every object of a request or an answer has a name, so that generated clients have a type for it; what errors have in common is told apart by codes', () => {
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

test('an object within another is named after it and its place; two of one name are refused', () => {
  const schemas = new DocumentSchemas();
  const inner = z.object({ size: z.number() });
  const outer = z.object({ first: inner, maybe: inner.nullable(), many: z.array(inner) });
  assert.deepEqual(schemas.named('TestMade', schemas.of(outer, 'output')), { $ref: '#/components/schemas/TestMade' });
  assert.deepEqual(Object.keys(schemas.components()), ['TestMade', 'TestMadeFirst', 'TestMadeMany', 'TestMadeMaybe']);
  assert.deepEqual(schemas.named('TestList', schemas.of(z.array(z.string()), 'output')), {
    type: 'array',
    items: { type: 'string' },
  });
  assert.throws(() => schemas.named('TestMade', schemas.of(inner, 'output')), /two schemas would be TestMade/);
});

test('a route that nobody thought of finds a group of its own, and known ones come first', () => {
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

test("openapi.json passes Redocly's linter by the recommended rules, without a warning", () => {
  const redocly = createRequire(import.meta.url).resolve('@redocly/cli/bin/cli.js');
  const linted = spawnSync(
    process.execPath,
    [redocly, 'lint', '--extends', 'recommended-strict', '--format', 'json', 'openapi.json'],
    {
      cwd: CHECKOUT,
      encoding: 'utf8',
      // It would ask the network for a newer version, and tell that it was used.
      env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    },
  );
  assert.equal(linted.status, 0, linted.stdout + linted.stderr);
  assert.deepEqual((JSON.parse(linted.stdout) as { totals: unknown }).totals, { errors: 0, warnings: 0, ignored: 0 });
});
