// Generates the OpenAPI 3.1 document from the routes. contract/test/document/print-openapi.ts
// writes openapi.json; the server serves the document.
import { DocumentSchemas, type JsonSchema } from './schemas.ts';
import { operationOf, SECURITY } from './operation.ts';
import { SHARED_HEADERS, SHARED_PARAMETERS } from './shared-parts.ts';
import { inOrder, tagOf } from './tags.ts';
import { ORG_REQUESTS_FACTOR, REQUESTS_PER_MINUTE } from '../route/limits.ts';
import type { Route } from '../route/route.ts';
import { ROUTES } from '../routes.ts';

const PREFIX = '/v1';
/** Origin of a new installation. */
const DEFAULT_ORIGIN = 'http://127.0.0.1:4800';

export interface OpenApiDocument extends JsonSchema {
  openapi: string;
  paths: Record<string, JsonSchema>;
  components: { schemas: Record<string, JsonSchema>; [kind: string]: Record<string, unknown> };
}

/** The published document. @param origin scheme, host and port of the service */
export function publishedDocument(origin: string = DEFAULT_ORIGIN): OpenApiDocument {
  return documentOf(
    ROUTES.filter(({ published }) => published),
    origin,
  );
}

/** A document with every route, for tools of this repository. */
export function fullDocument(origin: string = DEFAULT_ORIGIN): OpenApiDocument {
  return documentOf(ROUTES, origin);
}

function documentOf(routes: readonly Route[], origin: string): OpenApiDocument {
  const schemas = new DocumentSchemas();
  const responses = new Map<string, JsonSchema>();
  // Register response schemas first: a request schema of the same name gets another name.
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

/** Returns the shared parts that the document refers to. */
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
    'Body of every error response. Decide on `code`, never on `message`. More codes may be added; clients ' +
    'must accept unknown values.',
  properties: {
    error: {
      type: 'object',
      properties: {
        message: { type: 'string', minLength: 1, description: 'Human-readable: what is wrong, and what is allowed.' },
        code: {
          type: 'string',
          description: 'Machine-readable. Each operation lists its codes by status.',
        },
        field: {
          type: 'string',
          description: 'Path of the first field at fault, such as `body.name`, if the error is about one.',
        },
        turnId: {
          type: 'string',
          description: 'Turn of an agent session, with `message_delivery_uncertain`.',
        },
      },
      required: ['message', 'code'],
    },
  },
  required: ['error'],
};

const INTRODUCTION = `Berth runs sandboxes: microVMs for code and coding agents. Sandboxes belong to projects,
projects belong to orgs.

**Requests.** Bodies are JSON in UTF-8. Every request except the health check carries
\`Authorization: Bearer <token>\`. Timestamps are ISO 8601 in UTC with milliseconds. Ids are opaque.

**Responses.** Every response has \`x-request-id\`. Every error has the body
\`{ "error": { "message", "code" } }\` and a matching status. Fields, error codes and enumeration values
may be added without a new version; clients must accept unknown ones.

**Lifecycle.** Create, sleep, wake, resize and destroy start a transition and wait up to 2 s for it
to finish. If it takes longer, poll the sandbox.

**Retries.** \`GET\` can be retried. A write whose response was lost may have been carried out:
check the resource before you retry, or send an \`Idempotency-Key\` where the operation accepts one.

**Rate limits.** ${REQUESTS_PER_MINUTE} requests per minute and credential, and
${ORG_REQUESTS_FACTOR} times as many of all credentials of an org, unless the operator configures
other limits. Above one, the response is 429 with \`Retry-After\`, and the message names the limit.
The headers \`RateLimit\` and \`RateLimit-Policy\` report the remaining requests of the credential.

**Lists.** Lists accept \`limit\` and \`after\`. Without both the whole list is returned, unless the
operation states a page size.

**Unpublished operations** (sign-in, terminals and tunnels, administration) may change without
notice.`;
