// Converts a route to an OpenAPI operation: parameters, body, responses by status, examples, and a
// description of the rules that schemas cannot express.
import type { z } from 'zod';
import { ERRORS, type ErrorCode } from '../route/errors.ts';
import { REMEDIES } from '../route/remedies.ts';
import { DEFAULT_BODY_BYTES, EXEC_KEEPALIVE_MS, TRANSITION_WAIT_MS } from '../route/limits.ts';
import { capitalized, type DocumentSchemas, type JsonSchema } from './schemas.ts';
import { tagOf } from './tags.ts';
import { errorsOf, NDJSON, statusOf, type AuthKind, type Route, type RouteExample } from '../route/route.ts';

/** Names of the security schemes, and of their tokens in prose. */
export const SECURITY: { readonly [kind in AuthKind]: { scheme: string; words: string; description: string } } = {
  session: {
    scheme: 'session',
    words: 'access token',
    description:
      "Access token of a sign-in session, for interactive clients. Grants the permissions of the user's " +
      'role; expires after about an hour.',
  },
  api_key: {
    scheme: 'apiKey',
    words: 'API key',
    description: 'API key, for scripts, CI and platforms. Acts as its creator in one org, within its scopes.',
  },
  agent_token: {
    scheme: 'agentToken',
    words: 'personal agent token',
    description: 'Personal agent token: controls agent sessions in all orgs of its creator, and nothing else.',
  },
};

const header = (name: string): JsonSchema => ({ $ref: `#/components/headers/${name}` });
const parameter = (name: string): JsonSchema => ({ $ref: `#/components/parameters/${name}` });

/** Shared parts of the document that operations add to. */
interface DocumentParts {
  schemas: DocumentSchemas;
  /** Keyed by name. */
  responses: Map<string, JsonSchema>;
}

const MOST_CODES_IN_NAME = 3;

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

const RAW_BYTES: JsonSchema = { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } };

function firstClause(text: string): string {
  return text.split(/; |\. |: /, 1)[0] ?? text;
}

function descriptionOf(route: Route): string {
  const sentences = [`${route.summary}.`];
  if (route.deprecated !== undefined)
    sentences.push(`Deprecated: call \`${route.method} ${route.deprecated.successor}\` instead.`);
  if (route.waits === true) {
    sentences.push(
      `Waits up to ${TRANSITION_WAIT_MS / 1_000} s for the transition to finish; if it takes longer, poll the sandbox.`,
    );
  }
  if (route.keepsAlive === true) {
    sentences.push(
      `After ${EXEC_KEEPALIVE_MS.headersAfter / 1_000} s, or the time of \`Prefer: wait\`, the status ` +
        `${route.response.status} is sent, then spaces as keep-alive; after a later failure the connection ` +
        'breaks before the end of the body, which is the error envelope.',
    );
  }
  if (route.websocket === true) {
    sentences.push(
      'Upgrades to a WebSocket: version 13, subprotocol `berth.v1`. With `berth.outcome` as well, a refusal is a ' +
        'text frame instead.',
    );
  }
  const paragraphs = [sentences.join(' ')];
  if (route.auth.length > 0) {
    const words = route.auth.map((kind) => SECURITY[kind].words).join(', ');
    paragraphs.push(
      `Accepts: ${words}. Permission: ${route.permission === null ? 'none' : `\`${route.permission}\``}.`,
    );
  }
  return paragraphs.join('\n\n');
}

function parametersOf(route: Route, schemas: DocumentSchemas): JsonSchema[] {
  const { params, query } = route.request;
  return [
    ...parametersIn('path', params, schemas),
    ...parametersIn('query', query, schemas, route.example?.query),
    ...(route.idempotent === true ? [parameter('IdempotencyKey')] : []),
    ...(route.ranges === true ? [parameter('Range'), parameter('IfRange')] : []),
    ...(route.waits === true ? [parameter('Prefer')] : []),
    ...(route.keepsAlive === true ? [parameter('PreferWait')] : []),
    ...(route.holds === true ? [parameter('PreferHold')] : []),
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
    // `name[KEY]=VALUE`; other parameters have the default style.
    ...(rest['type'] === 'object' ? { style: 'deepObject', explode: true } : {}),
    schema: rest,
    ...(example?.[name] === undefined ? {} : { example: example[name] }),
  }));
}

/** Undefined if the route takes no body, or only accepts an empty object in its place. */
function requestBodyOf({ name, request, example, upload }: Route, schemas: DocumentSchemas): JsonSchema | undefined {
  if (upload === true) return { required: true, content: RAW_BYTES };
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
    ...(route.ranges === true ? [['206', rangeOf(route)]] : []),
    ...failures.map(([status, codes]) => [String(status), sharedFailure(route, status, codes, parts.responses)]),
  ]);
}

/** Shares equal error responses as components, named after their codes. */
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

function prefers({ waits, keepsAlive, holds }: Route): boolean {
  return waits === true || keepsAlive === true || holds === true;
}

function successOf(route: Route, schemas: DocumentSchemas): JsonSchema {
  const { status, body, ndjson, bytes } = route.response;
  const headers = {
    ...headersOfAll(route),
    ...(route.idempotent === true ? { 'idempotent-replayed': header('IdempotentReplayed') } : {}),
    ...(route.ranges === true ? RANGE_HEADERS : {}),
    ...(prefers(route) ? { 'preference-applied': header('PreferenceApplied') } : {}),
  };
  if (status === 101) return { description: 'Switching to a WebSocket.', headers };
  if (bytes === true) return { description: 'The content.', headers, content: RAW_BYTES };
  // Not "Response": generators use that suffix for their wrapper of all responses.
  const schema = schemas.named(`${capitalized(route.name)}Result`, schemas.of(body, 'output'));
  const media = { schema, ...(route.example === undefined ? {} : { example: route.example.answer }) };
  return {
    description: status === 201 ? 'Created.' : 'Success.',
    headers,
    content: { [ndjson === true ? NDJSON : 'application/json']: media },
  };
}

const RANGE_HEADERS = { 'accept-ranges': header('AcceptRanges'), etag: header('ETag') };

function rangeOf(route: Route): JsonSchema {
  const headers = { ...headersOfAll(route), ...RANGE_HEADERS, 'content-range': header('ContentRange') };
  return { description: 'The requested range.', headers, content: RAW_BYTES };
}

function failureOf(route: Route, status: number, codes: readonly ErrorCode[]): JsonSchema {
  const meanings = codes.map((code) => `- \`${code}\`: ${ERRORS[code].meaning} ${REMEDIES[code]}`);
  if (status === 413 && codes.includes('payload_too_large'))
    meanings.push('', `Maximum body size: ${route.bodyBytes ?? DEFAULT_BODY_BYTES} bytes.`);
  return {
    description: meanings.join('\n'),
    headers: {
      ...headersOfAll(route, status),
      ...(status === 401 ? { 'www-authenticate': header('WwwAuthenticate') } : {}),
      ...(status === 416 ? { 'content-range': header('ContentRange') } : {}),
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

/** Errors before authentication do not count towards the rate limit. */
const BEFORE_COUNTING: readonly number[] = [401, 431];

function headersOfAll(route: Route, status?: number): JsonSchema {
  const counted = route.auth.length > 0 && !BEFORE_COUNTING.includes(status ?? route.response.status);
  return {
    'x-request-id': header('RequestId'),
    ...(counted ? { ratelimit: header('RateLimit'), 'ratelimit-policy': header('RateLimitPolicy') } : {}),
    ...(route.deprecated === undefined ? {} : { deprecation: header('Deprecation'), link: header('Link') }),
  };
}
