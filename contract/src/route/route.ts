// A route of the public API as data. The server, its tests and the published document derive from
// it.
import type { z } from 'zod';
import type { ActivityKind } from './activity-kinds.ts';
import { ERRORS, type ErrorCode } from './errors.ts';
import { INSTALLATION, type Permission } from './permissions.ts';

/**
 * Kinds of bearer tokens (spec: Authentication). `session` is the access token of a sign-in
 * session. API keys can call only routes that list `api_key`.
 */
export const AUTH_KINDS = ['session', 'api_key', 'agent_token'] as const;
export type AuthKind = (typeof AUTH_KINDS)[number];

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

interface RouteRequest {
  /**
   * The `{names}` of the path. `orgId` and those of {@link NAMED_IN_PATHS} identify the org whose
   * membership and role decide access. Routes of {@link isOfOperator} name none.
   */
  params?: z.ZodObject;
  query?: z.ZodObject;
  body?: z.ZodType;
}

/** A text field that the service decodes while the body arrives, instead of keeping the body. */
export interface LongField {
  name: string;
  /** Maximum length in UTF-8. */
  maxBytes: number;
  /** Error of a longer text. */
  tooLong: ErrorCode;
  /** Limit in characters of the body without the field, as JSON; by default 65,536. */
  restCharacters?: number;
}

export interface Route {
  /** Unique operation id. */
  name: string;
  summary: string;
  method: Method;
  /** Parameters are in braces: `{orgId}`. */
  path: string;
  /** Accepted token kinds; empty: no token required. */
  auth: readonly AuthKind[];
  /** Required in the resource's org; null: any caller, or any member if the path has an org. */
  permission: Permission | null;
  request: RouteRequest;
  /** Maximum body size in bytes; the default is in limits.ts. */
  bodyBytes?: number;
  /** The text field that may be most of the body. */
  longField?: LongField;
  /** The body is raw bytes of any length, as `application/octet-stream` with a Content-Length. */
  upload?: true;
  /** Access tokens need a recent sign-in (`BERTH_REAUTHENTICATE_MINUTES`). */
  freshSignIn?: true;
  /** Accepts `Idempotency-Key`: a repeat with the same key and body returns the first resource. */
  idempotent?: boolean;
  /** Waits for the transition to finish, unless called with `Prefer: respond-async`. */
  waits?: true;
  /**
   * The response may take minutes: its headers and white space are sent ahead of the JSON, or later
   * with `Prefer: wait=N`.
   */
  keepsAlive?: true;
  /** Held with `Prefer: wait=N`, at most `HOLD_SECONDS`, until there is something new. */
  holds?: true;
  /** Sends a range of its bytes, with 206, on request (`Range`, `If-Range`). */
  ranges?: true;
  /** An alias for old callers. Responses carry `Deprecation` and a `Link` to the successor. */
  deprecated?: { since: string; successor: string };
  /**
   * Upgrades to a WebSocket (connections/websocket.ts): GET with `Upgrade: websocket`, response 101
   * without a body. Errors before the upgrade, and a request without one, get a JSON error.
   */
  websocket?: true;
  /**
   * The success response; 101 for a WebSocket. `ndjson`: the body is an array, sent with one
   * element per line. `bytes`: raw bytes; the schema is not used.
   */
  response: { status: 101 | 200 | 201 | 202; body: z.ZodType; ndjson?: true; bytes?: true };
  /** Errors in addition to those that {@link errorsOf} derives. */
  errors: readonly ErrorCode[];
  /** Activity entry written on success; null for reads. */
  activity: ActivityKind | null;
  /** Included in the published OpenAPI document. */
  published: boolean;
  /** Example request and response for the documents. A test sends it and compares the response. */
  example?: RouteExample;
}

/** Uses the ids and times of examples.ts, for which the test substitutes real ones. */
export interface RouteExample {
  query?: Readonly<Record<string, string | number>>;
  body?: unknown;
  answer: unknown;
}

/** Checks a route value and keeps its literal types. */
export function defineRoute<const R extends Route>(route: R): R {
  return route;
}

type Part<R extends Route, K extends keyof RouteRequest> = R['request'] extends { [key in K]: z.ZodType }
  ? z.output<R['request'][K]>
  : undefined;

export type RouteParams<R extends Route> = Part<R, 'params'>;
export type RouteQuery<R extends Route> = Part<R, 'query'>;
export type RouteBody<R extends Route> = Part<R, 'body'>;
/** Response body returned by a handler, before serialization. */
export type RouteAnswer<R extends Route> = z.input<R['response']['body']>;

/**
 * Path parameters other than `orgId` that name a resource of an org, with their not-found error.
 */
export const NAMED_IN_PATHS = {
  sandboxId: 'sandbox_not_found',
  projectId: 'project_not_found',
  keyId: 'api_key_not_found',
  invitationId: 'invitation_not_found',
  domainId: 'domain_not_found',
  sessionId: 'agent_session_not_found',
} as const satisfies Record<string, ErrorCode>;
export type NamedInPath = keyof typeof NAMED_IN_PATHS;

/** True if access to the route is decided in the operator's org. */
export function isOfOperator({ permission }: Pick<Route, 'permission'>): boolean {
  return permission !== null && INSTALLATION.includes(permission);
}

/** Every error code that the route may return. */
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
  if (route.freshSignIn === true) codes.add('reauthentication_required');
  if (route.websocket === true) codes.add('upgrade_required');
  if (route.idempotent === true) codes.add('idempotency_key_conflict');
  if (route.path.includes('{orgId}')) codes.add('org_not_found').add('org_access_denied');
  const isInOrg = isOfOperator(route) || /\{(orgId|sandboxId|sessionId)\}/.test(route.path);
  if (isOfOperator(route)) codes.add('org_access_denied');
  if (isInOrg && route.auth.includes('session')) codes.add('sso_required');
  for (const [name, code] of Object.entries(NAMED_IN_PATHS))
    if (route.path.includes(`{${name}}`)) codes.add(code).add('org_access_denied');

  if (route.upload === true) codes.add('unsupported_media_type').add('too_much_in_flight');
  else if (route.method !== 'GET')
    codes.add('invalid_json').add('payload_too_large').add('unsupported_media_type').add('too_much_in_flight');

  return codes;
}

/** Media type of a response with `ndjson`. */
export const NDJSON = 'application/x-ndjson';

/** The HTTP status of a code. */
export function statusOf(code: ErrorCode): number {
  return ERRORS[code].status;
}
