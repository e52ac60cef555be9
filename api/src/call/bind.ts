// Binds a route of the contract to its handler, with the types that the route implies.
import type { RangeRequest } from '@berth/contract/files/byte-range.ts';
import type { Route, RouteAnswer, RouteBody, RouteParams, RouteQuery } from '@berth/contract/route/route.ts';
import type { Actor, BearerToken } from '../services/access/authentication.ts';
import type { AgentSessionRow } from '../services/agents/sessions.ts';
import type { Connecting, SandboxConnection } from '../services/connections/connections.ts';
import type { ServiceContext } from '../services/context/context.ts';
import type { Upload } from '../services/files/transfers.ts';
import type { LocatedSandboxRow } from '../services/sandboxes/sandboxes.ts';

/** A request, authenticated, authorized and parsed. */
export interface Call<R extends Route> {
  params: RouteParams<R>;
  query: RouteQuery<R>;
  body: RouteBody<R>;
  actor: R['auth'] extends readonly [] ? undefined : Extract<Actor, { kind: R['auth'][number] }>;
  /** The credential, for rechecks. */
  bearer: R['auth'] extends readonly [] ? undefined : BearerToken;
  /** The raw body of a route that uploads. */
  upload: R extends { upload: true } ? Upload : undefined;
  /** The headers of a route that sends ranges. */
  range: R extends { ranges: true } ? RangeRequest : undefined;
  /** The sandbox of the path, or of its session, as of the access decision. */
  sandbox: R['path'] extends `${string}{${'sandboxId' | 'sessionId'}}${string}` ? LocatedSandboxRow : undefined;
  /** The agent session of the path. */
  session: R['path'] extends `${string}{sessionId}${string}` ? AgentSessionRow : undefined;
  /** `Prefer: wait=N` of a route that `holds`, in milliseconds; 0 without it or a free place. */
  holdMs: number;
  /** `Prefer: respond-async` was sent and the route honours it. */
  respondAsync: boolean;
  /** `Idempotency-Key`, if the route accepts one. */
  idempotencyKey: string | undefined;
  /** Marks the response as a replay of an earlier call with the same key. */
  markReplayed(this: void): void;
  /** Counts bytes that the response keeps in memory. Throws `too_much_in_flight`. */
  hold(this: void, bytes: number): void;
  /** Aborts when the caller disconnects. */
  signal: AbortSignal;
}

/** A call whose route the type checker does not know. */
export interface AnyCall {
  params: unknown;
  query: unknown;
  body: unknown;
  actor: Actor | undefined;
  bearer: BearerToken | undefined;
  upload: Upload | undefined;
  range: RangeRequest | undefined;
  sandbox: LocatedSandboxRow | undefined;
  session: AgentSessionRow | undefined;
  holdMs: number;
  respondAsync: boolean;
  idempotencyKey: string | undefined;
  markReplayed(this: void): void;
  /** Counts bytes that the response keeps in memory. Throws `too_much_in_flight`. */
  hold(this: void, bytes: number): void;
  signal: AbortSignal;
}

export interface BoundAnswer {
  route: Route;
  answer(context: ServiceContext, call: AnyCall): Promise<unknown>;
}

/** `command`: without a terminal. */
export type DialectName = 'tunnel' | 'terminal' | 'command' | 'process';

/** A route that becomes a WebSocket. */
export interface BoundWebSocket {
  route: Route;
  /** Frame protocol, selected by the query. */
  dialectName(query: unknown): DialectName;
  connect(context: ServiceContext, connecting: Connecting, query: unknown, params: unknown): Promise<SandboxConnection>;
}

export type BoundRoute = BoundAnswer | BoundWebSocket;

/** `answer` returns the body of a successful response and throws every failure. */
export function bind<const R extends Route>(
  route: R,
  answer: (context: ServiceContext, call: Call<R>) => Promise<RouteAnswer<R>>,
): BoundAnswer {
  return {
    route,
    // The server parses with the schemas of this route before the call.
    answer: (context, call) => answer(context, call as Call<R>),
  };
}

/**
 * `connect` opens the connection to join with the WebSocket and throws every failure before that.
 */
export function bindWebSocket<const R extends Route & { websocket: true }>(
  route: R,
  dialectName: (query: RouteQuery<R>) => DialectName,
  connect: (
    context: ServiceContext,
    connecting: Connecting,
    query: RouteQuery<R>,
    params: RouteParams<R>,
  ) => Promise<SandboxConnection>,
): BoundWebSocket {
  return {
    route,
    dialectName: (query) => dialectName(query as RouteQuery<R>),
    connect: (context, connecting, query, params) =>
      connect(context, connecting, query as RouteQuery<R>, params as RouteParams<R>),
  };
}
