// One route as an operation of a document: parameters, body, the answers with each status,
// examples, and in words what schemas cannot say.
import type { z } from 'zod';
import { ERRORS, type ErrorCode } from '../route/errors.ts';
import { DEFAULT_BODY_BYTES, EXEC_KEEPALIVE_MS, IDEMPOTENCY_KEY, TRANSITION_WAIT_MS } from '../route/limits.ts';
import { capitalized, type DocumentSchemas, type JsonSchema } from './schemas.ts';
import { tagOf } from './tags.ts';
import { errorsOf, statusOf, type AuthKind, type Route, type RouteExample } from '../route/route.ts';

/** Names of the security schemes, and what the tokens are called in words. */
export const SECURITY: { readonly [kind in AuthKind]: { scheme: string; words: string; description: string } } = {
  session: {
    scheme: 'session',
    words: 'session token',
    description:
      'Session token of a signed-in person, for interactive clients. Grants what their role in the org does; expires after about an hour.',
  },
  api_key: {
    scheme: 'apiKey',
    words: 'API key',
    description: 'API key, for scripts, CI and platforms. Acts as its creator in one org, within its scopes.',
  },
  agent_token: {
    scheme: 'agentToken',
    words: 'personal agent token',
    description: "Personal agent token: drives agent sessions across its creator's orgs, and nothing else.",
  },
};

const header = (name: string): JsonSchema => ({ $ref: `#/components/headers/${name}` });
const parameter = (name: string): JsonSchema => ({ $ref: `#/components/parameters/${name}` });

/** What operations refer to. */
export const SHARED_HEADERS: Readonly<Record<string, JsonSchema>> = {
  RequestId: {
    description: 'Id of the request, also in the log of the service.',
    schema: { type: 'string' },
    example: 'req_0123456789abcdef0123456789abcdef',
  },
  RetryAfter: { description: 'Seconds to wait before the next try.', schema: { type: 'integer', minimum: 0 } },
  RateLimit: {
    description:
      'What is left of the rate of this credential, and when it is whole again: `"default";r=<left>;t=<seconds>`.',
    schema: { type: 'string' },
  },
  RateLimitPolicy: {
    description: 'Requests (`q`) in a window of seconds (`w`) of one credential.',
    schema: { type: 'string' },
  },
  WwwAuthenticate: { description: 'Always `Bearer`.', schema: { type: 'string' } },
  Deprecation: { description: 'Since when the route is deprecated (RFC 9745).', schema: { type: 'string' } },
  Link: { description: 'Leads to the route to call instead (`rel="successor-version"`).', schema: { type: 'string' } },
  IdempotentReplayed: {
    description: '`true` when this is the answer of an earlier call with the same `Idempotency-Key`.',
    schema: { type: 'string' },
  },
  PreferenceApplied: { description: '`respond-async` when that was asked for.', schema: { type: 'string' } },
};

export const SHARED_PARAMETERS: Readonly<Record<string, JsonSchema>> = {
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      `The same key and body again, within ${IDEMPOTENCY_KEY.keptHours} hours, give the resource of the first call instead of making another one. ` +
      'Make it up for each thing to be made, and a call whose answer was lost can be repeated.',
    schema: { type: 'string', minLength: 1, maxLength: IDEMPOTENCY_KEY.maxCharacters, pattern: '^[\\x20-\\x7e]+$' },
  },
  Prefer: {
    name: 'Prefer',
    in: 'header',
    required: false,
    description: '`respond-async`: answers at once instead of waiting for the transition to end.',
    schema: { type: 'string', examples: ['respond-async'] },
  },
};

/** What operations put into the document besides themselves. */
export interface DocumentParts {
  schemas: DocumentSchemas;
  /** By name. */
  responses: Map<string, JsonSchema>;
}

const MOST_CODES_IN_NAME = 3;

/** The operation of a route. */
export function operationOf(route: Route, parts: DocumentParts): JsonSchema {
  const { schemas } = parts;
  const tokens = route.auth.map((kind) => ({
    [SECURITY[kind].scheme]: route.permission === null ? [] : [route.permission],
  }));
  const parameters = parametersOf(route, schemas);
  const body = requestBodyOf(route, schemas);
  return {
    operationId: route.name,
    tags: [tagOf(route.path).name],
    summary: firstClause(route.summary),
    description: descriptionOf(route),
    ...(route.deprecated === undefined ? {} : { deprecated: true }),
    security: tokens,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: body }),
    responses: responsesOf(route, parts),
  };
}

function firstClause(text: string): string {
  return text.split(/; |\. |: /, 1)[0] ?? text;
}

function descriptionOf(route: Route): string {
  const sentences = [`${route.summary}.`];
  if (route.deprecated !== undefined)
    sentences.push(`Deprecated: call \`${route.method} ${route.deprecated.successor}\` instead.`);
  if (route.waits === true) {
    sentences.push(
      `The answer waits up to ${TRANSITION_WAIT_MS / 1_000} s for the transition to end; one that takes longer is followed by fetching the sandbox.`,
    );
  }
  if (route.name === 'execInSandbox') {
    sentences.push(
      `After ${EXEC_KEEPALIVE_MS.headersAfter / 1_000} s the answer begins with its headers and then spaces; what fails after that breaks the connection off.`,
    );
  }
  if (route.websocket === true)
    sentences.push('A WebSocket: asked for with an upgrade to version 13 and the subprotocol `berth.v1`.');
  const paragraphs = [sentences.join(' ')];
  if (route.auth.length > 0) {
    const words = route.auth.map((kind) => SECURITY[kind].words).join(', ');
    paragraphs.push(`Takes: ${words}. Permission: ${route.permission === null ? 'none' : `\`${route.permission}\``}.`);
  }
  return paragraphs.join('\n\n');
}

function parametersOf(route: Route, schemas: DocumentSchemas): JsonSchema[] {
  const { params, query } = route.request;
  return [
    ...parametersIn('path', params, schemas),
    ...parametersIn('query', query, schemas, route.example?.query),
    ...(route.idempotent === true ? [parameter('IdempotencyKey')] : []),
    ...(route.waits === true ? [parameter('Prefer')] : []),
  ];
}

function parametersIn(
  place: 'path' | 'query',
  schema: z.ZodObject | undefined,
  schemas: DocumentSchemas,
  example?: RouteExample['query'],
): JsonSchema[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = schemas.of(schema, 'input') as {
    properties?: Record<string, JsonSchema>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: rest,
    ...(example?.[name] === undefined ? {} : { example: example[name] }),
  }));
}

/** Undefined when the route takes none; an empty object that is taken for none is not shown. */
function requestBodyOf({ name, request, example }: Route, schemas: DocumentSchemas): JsonSchema | undefined {
  if (request.body === undefined) return undefined;
  const required = !request.body.safeParse(undefined).success;
  const found = schemas.of(request.body, 'input');
  const empty = typeof found['properties'] === 'object' && Object.keys(found['properties'] as object).length === 0;
  if (empty && !required) return undefined;
  const schema = schemas.named(`${capitalized(name)}Request`, found);
  return {
    required,
    content: { 'application/json': { schema, ...(example?.body === undefined ? {} : { example: example.body }) } },
  };
}

function responsesOf(route: Route, parts: DocumentParts): JsonSchema {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of [...errorsOf(route)].toSorted())
    byStatus.set(statusOf(code), [...(byStatus.get(statusOf(code)) ?? []), code]);
  const failures = [...byStatus].toSorted(([one], [other]) => one - other);
  return Object.fromEntries([
    [String(route.response.status), successOf(route, parts.schemas)],
    ...failures.map(([status, codes]) => [String(status), sharedFailure(route, status, codes, parts.responses)]),
  ]);
}

/** What many operations answer stands once in the document, under the name of its codes. */
function sharedFailure(
  route: Route,
  status: number,
  codes: readonly ErrorCode[],
  responses: Map<string, JsonSchema>,
): JsonSchema {
  const failure = failureOf(route, status, codes);
  const usual = route.auth.length > 0 && route.deprecated === undefined && route.bodyBytes === undefined;
  if (!usual || codes.length > MOST_CODES_IN_NAME) return failure;
  const name = codes
    .map((code) => code.replaceAll(/(^|_)([a-z])/g, (_match, _before, letter: string) => letter.toUpperCase()))
    .join('Or');
  responses.set(name, failure);
  return { $ref: `#/components/responses/${name}` };
}

function successOf(route: Route, schemas: DocumentSchemas): JsonSchema {
  const { status, body } = route.response;
  const headers = {
    ...headersOfAll(route),
    ...(route.idempotent === true ? { 'idempotent-replayed': header('IdempotentReplayed') } : {}),
    ...(route.waits === true ? { 'preference-applied': header('PreferenceApplied') } : {}),
  };
  if (status === 101) return { description: 'The WebSocket is open.', headers };
  // Not "Response", which is what generators call what they make of all the answers of an
  // operation.
  const schema = schemas.named(`${capitalized(route.name)}Result`, schemas.of(body, 'output'));
  const media = { schema, ...(route.example === undefined ? {} : { example: route.example.answer }) };
  return { description: status === 201 ? 'Made.' : 'Done.', headers, content: { 'application/json': media } };
}

function failureOf(route: Route, status: number, codes: readonly ErrorCode[]): JsonSchema {
  const meanings = codes.map((code) => `- \`${code}\`: ${ERRORS[code].meaning}`);
  if (status === 413 && codes.includes('payload_too_large'))
    meanings.push('', `This route takes ${route.bodyBytes ?? DEFAULT_BODY_BYTES} bytes.`);
  return {
    description: meanings.join('\n'),
    headers: {
      ...headersOfAll(route, status),
      ...(status === 401 ? { 'www-authenticate': header('WwwAuthenticate') } : {}),
      ...(status === 429 || status === 503 ? { 'retry-after': header('RetryAfter') } : {}),
    },
    content: {
      'application/json': {
        schema: {
          allOf: [
            { $ref: '#/components/schemas/ErrorEnvelope' },
            {
              type: 'object',
              properties: { error: { type: 'object', properties: { code: { type: 'string', enum: codes } } } },
            },
          ],
        },
      },
    },
  };
}

/** Before it is known who calls nothing is counted. */
const BEFORE_COUNTING: readonly number[] = [401, 431];

function headersOfAll(route: Route, status?: number): JsonSchema {
  const counted = route.auth.length > 0 && !BEFORE_COUNTING.includes(status ?? route.response.status);
  return {
    'x-request-id': header('RequestId'),
    ...(counted ? { ratelimit: header('RateLimit'), 'ratelimit-policy': header('RateLimitPolicy') } : {}),
    ...(route.deprecated === undefined ? {} : { deprecation: header('Deprecation'), link: header('Link') }),
  };
}
