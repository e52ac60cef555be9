// What a route of the public API is, as data. Everything that the server, its tests and the
// published document know of a route is here.
import type { z } from 'zod';
import type { ActivityKind } from './activity-kinds.ts';
import { ERRORS, type ErrorCode } from './errors.ts';
import type { Permission } from './permissions.ts';

/**
 * Kinds of bearer tokens (spec: Authentication). A route that does not list `api_key` is outside
 * the keys' allow-list.
 */
export const AUTH_KINDS = ['session', 'api_key', 'agent_token'] as const;
export type AuthKind = (typeof AUTH_KINDS)[number];

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface RouteRequest {
  /**
   * The `{names}` of the path. `orgId` and those of {@link NAMED_IN_PATHS} also say whose resource
   * it is, and access is decided by them.
   */
  params?: z.ZodObject;
  query?: z.ZodObject;
  body?: z.ZodType;
}

export interface Route {
  /** Name of the operation, unique. */
  name: string;
  summary: string;
  method: Method;
  /** With `{params}` in braces. */
  path: string;
  /** Kinds of tokens taken; empty: no token is needed. */
  auth: readonly AuthKind[];
  /** Needed in the org of the resource; null: any caller, or any member of the org. */
  permission: Permission | null;
  request: RouteRequest;
  /** Longest body in bytes; the default is in limits.ts. */
  bodyBytes?: number;
  /**
   * Takes the header `Idempotency-Key`: the same key and body again give the first answer's
   * resource.
   */
  idempotent?: boolean;
  /**
   * The answer is held for the transition to end, unless it is asked for with `Prefer:
   * respond-async`.
   */
  waits?: true;
  /**
   * An alias that is kept for old callers; answers carry `Deprecation` and a `Link` to the
   * successor's path.
   */
  deprecated?: { since: string; successor: string };
  /**
   * Becomes a WebSocket (websocket.ts): asked with GET and `Upgrade: websocket`, answered 101
   * without a body. What is refused before that is a JSON error as of any route; so is the same
   * request without an upgrade.
   */
  websocket?: true;
  /** The successful answer; 101 of a WebSocket. */
  response: { status: 101 | 200 | 201; body: z.ZodType };
  /** Errors beyond those that follow from `auth`, `permission`, `request` and the path. */
  errors: readonly ErrorCode[];
  /** The row that a success leaves in the activity feed; null for reads only. */
  activity: ActivityKind | null;
  /** Part of the published OpenAPI document. */
  published: boolean;
  /**
   * A request as the documents show it, and its answer. A test sends it and holds the answer
   * against this one.
   */
  example?: RouteExample;
}

/** Ids and times in it are those of examples.ts; the test puts real ones in their place. */
export interface RouteExample {
  query?: Readonly<Record<string, string | number>>;
  body?: unknown;
  answer: unknown;
}

/** Types a route value and keeps its literal types. */
export function defineRoute<const R extends Route>(route: R): R {
  return route;
}

type Part<R extends Route, K extends keyof RouteRequest> = R['request'] extends { [key in K]: z.ZodType }
  ? z.output<R['request'][K]>
  : undefined;

export type RouteParams<R extends Route> = Part<R, 'params'>;
export type RouteQuery<R extends Route> = Part<R, 'query'>;
export type RouteBody<R extends Route> = Part<R, 'body'>;
/** What a handler gives for the answer's body, before it is written as JSON. */
export type RouteAnswer<R extends Route> = z.input<R['response']['body']>;

/** Parameters that name a resource of an org, besides `orgId`, and the error when there is none. */
export const NAMED_IN_PATHS = {
  sandboxId: 'sandbox_not_found',
  projectId: 'project_not_found',
  keyId: 'api_key_not_found',
  invitationId: 'invitation_not_found',
} as const satisfies Record<string, ErrorCode>;
export type NamedInPath = keyof typeof NAMED_IN_PATHS;

/** Every code the route may answer with. */
export function errorsOf(route: Route): Set<ErrorCode> {
  const codes = new Set<ErrorCode>([
    'internal',
    'shutting_down',
    'invalid_request',
    'request_header_too_large',
    ...route.errors,
  ]);
  if (route.auth.length > 0) codes.add('unauthenticated').add('auth_kind_not_allowed').add('rate_limited');
  if (route.permission !== null) codes.add('permission_denied');
  if (route.websocket === true) codes.add('upgrade_required');
  if (route.idempotent === true) codes.add('idempotency_key_conflict');
  if (route.path.includes('{orgId}')) codes.add('org_not_found').add('org_access_denied');
  for (const [name, code] of Object.entries(NAMED_IN_PATHS))
    if (route.path.includes(`{${name}}`)) codes.add(code).add('org_access_denied');

  if (route.method !== 'GET') codes.add('invalid_json').add('payload_too_large').add('unsupported_media_type');
  return codes;
}

/** The HTTP status of a code. */
export function statusOf(code: ErrorCode): number {
  return ERRORS[code].status;
}
