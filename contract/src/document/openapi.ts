// The OpenAPI 3.1 document of the API, as it follows from the routes. Values only:
// contract/test/document/print-openapi.ts writes openapi.json, the server serves it.
import { DocumentSchemas, type JsonSchema } from './schemas.ts';
import { operationOf, SECURITY, SHARED_HEADERS, SHARED_PARAMETERS } from './operation.ts';
import { inOrder, tagOf } from './tags.ts';
import { REQUESTS_PER_MINUTE } from '../route/limits.ts';
import type { Route } from '../route/route.ts';
import { ROUTES } from '../routes.ts';

const PREFIX = '/v1';
/** Where a new installation listens. */
export const DEFAULT_ORIGIN = 'http://127.0.0.1:4800';

export interface OpenApiDocument extends JsonSchema {
  openapi: string;
  paths: Record<string, JsonSchema>;
  components: { schemas: Record<string, JsonSchema>; [kind: string]: Record<string, unknown> };
}

/** The published document. @param origin by which the service is reached */
export function publishedDocument(origin: string = DEFAULT_ORIGIN): OpenApiDocument {
  return documentOf(
    ROUTES.filter(({ published }) => published),
    origin,
  );
}

/** One with every route, for what is made with the service. */
export function fullDocument(origin: string = DEFAULT_ORIGIN): OpenApiDocument {
  return documentOf(ROUTES, origin);
}

function documentOf(routes: readonly Route[], origin: string): OpenApiDocument {
  const schemas = new DocumentSchemas();
  const responses = new Map<string, JsonSchema>();
  // So that what is named means the same in every answer, whatever a request makes of it.
  for (const { response } of routes) if (response.status !== 101) schemas.of(response.body, 'output');
  const paths: Record<string, JsonSchema> = {};
  for (const route of routes) {
    const below = route.path.startsWith(`${PREFIX}/`);
    const path = below ? route.path.slice(PREFIX.length) : route.path;
    paths[path] ??= below ? {} : { servers: [{ url: origin, description: `Outside ${PREFIX}.` }] };
    paths[path][route.method.toLowerCase()] = operationOf(route, { schemas, responses });
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Berth API',
      version: '1.0.0',
      summary: 'Isolated microVM sandboxes for running code and coding agents',
      description: INTRODUCTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: origin + PREFIX }],
    tags: inOrder(routes.map(({ path }) => tagOf(path))),
    paths,
    components: {
      securitySchemes: Object.fromEntries(
        Object.entries(SECURITY)
          .filter(([kind]) => routes.some(({ auth }) => (auth as readonly string[]).includes(kind)))
          .map(([, { scheme, description }]) => [scheme, { type: 'http', scheme: 'bearer', description }]),
      ),
      schemas: { ...schemas.components(), ErrorEnvelope: ERROR_ENVELOPE },
      responses: Object.fromEntries([...responses].toSorted(([one], [other]) => (one < other ? -1 : 1))),
      parameters: usedBy(paths, 'parameters', SHARED_PARAMETERS),
      headers: usedBy({ ...paths, ...Object.fromEntries(responses) }, 'headers', SHARED_HEADERS),
    },
  };
}

/** Those of the shared parts that something refers to. */
function usedBy(
  paths: Record<string, JsonSchema>,
  kind: string,
  parts: Readonly<Record<string, JsonSchema>>,
): Record<string, JsonSchema> {
  const text = JSON.stringify(paths);
  return Object.fromEntries(Object.entries(parts).filter(([name]) => text.includes(`"#/components/${kind}/${name}"`)));
}

const ERROR_ENVELOPE: JsonSchema = {
  type: 'object',
  description:
    'The body of every error answer. Decide on the code, never on the message; take codes that you do not know.',
  properties: {
    error: {
      type: 'object',
      properties: {
        message: { type: 'string', minLength: 1, description: 'For people: what is wrong, and what is allowed.' },
        code: {
          type: 'string',
          description:
            'For programs. Which ones occur stands at each status of each operation; further ones will come.',
        },
      },
      required: ['message', 'code'],
    },
  },
  required: ['error'],
};

const INTRODUCTION = `Berth runs sandboxes: microVMs for code and coding agents. Sandboxes belong to projects, projects to orgs.

**Requests.** Bodies are JSON in UTF-8. Every request but the health check carries \`Authorization: Bearer <token>\`. Timestamps are ISO 8601 in UTC with
milliseconds. Ids are opaque.

**Answers.** Every answer has \`x-request-id\`. Errors have one envelope, \`{ "error": { "message", "code" } }\`, and a matching status. Clients take fields, codes and
values of enumerations that they do not know: further ones come without a new version.

**Lifecycle.** A sandbox is made, put to sleep, woken, resized and destroyed by calls that begin a transition; they wait up to 2 s for its end, and what takes longer is
followed by fetching the sandbox.

**Retries.** \`GET\` may be repeated. A write whose answer was lost may have been carried out: look before it is repeated, or make it with an \`Idempotency-Key\` where the
operation takes one.

**Rates.** ${REQUESTS_PER_MINUTE} requests a minute of one credential unless the operator set another number; above it 429 with \`Retry-After\`. The headers \`RateLimit\` and
\`RateLimit-Policy\` say what is left.

**Lists.** Lists take \`limit\` and \`after\`; without both they are answered whole, unless the operation says otherwise.

**Parts of the service that this document does not show** (signing in, terminals and tunnels, administration) are not promised to stay as they are.`;
