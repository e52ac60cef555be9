// Ties a route value of the contract to what answers it, with the types that follow from the value.
import type { Route, RouteAnswer, RouteBody, RouteParams, RouteQuery } from '@berth/contract/route/route.ts';
import type { Actor } from '../services/access/authentication.ts';
import type { Connecting, SandboxConnection } from '../services/connections/connections.ts';
import type { ServiceContext } from '../services/context/context.ts';
import type { LocatedSandboxRow } from '../services/sandboxes/sandboxes.ts';

/** One request, authenticated, allowed and parsed. */
export interface Call<R extends Route> {
  params: RouteParams<R>;
  query: RouteQuery<R>;
  body: RouteBody<R>;
  actor: R['auth'] extends readonly [] ? undefined : Actor;
  /** The sandbox of the path, as it was when access was decided. */
  sandbox: R['path'] extends `${string}{sandboxId}${string}` ? LocatedSandboxRow : undefined;
  /** `Prefer: respond-async` was sent and the route honours it. */
  respondAsync: boolean;
  /** `Idempotency-Key` of a route that takes one. */
  idempotencyKey: string | undefined;
  /** Says in the answer that it is that of an earlier call with the same key. */
  noteReplay(this: void): void;
  /** Aborts when the caller goes away. */
  signal: AbortSignal;
}

/** A call whose route is not known to the type checker. */
export interface AnyCall {
  params: unknown;
  query: unknown;
  body: unknown;
  actor: Actor | undefined;
  sandbox: LocatedSandboxRow | undefined;
  respondAsync: boolean;
  idempotencyKey: string | undefined;
  noteReplay(this: void): void;
  signal: AbortSignal;
}

interface BindOptions {
  /** The answer may take minutes: headers and white space are sent ahead of it. */
  keepsAlive?: boolean;
}

export interface BoundAnswer extends Required<BindOptions> {
  route: Route;
  answer(context: ServiceContext, call: AnyCall): Promise<unknown>;
}

/** `command`: one without a terminal. */
export type Speech = 'tunnel' | 'terminal' | 'command';

/** A route that becomes a WebSocket. */
export interface BoundWebSocket {
  route: Route;
  /** What its frames are, by its query. */
  speaks(query: unknown): Speech;
  connect(context: ServiceContext, connecting: Connecting, query: unknown): Promise<SandboxConnection>;
}

export type BoundRoute = BoundAnswer | BoundWebSocket;

/** `answer` gives the body of the successful answer; every failure is thrown. */
export function bind<const R extends Route>(
  route: R,
  answer: (context: ServiceContext, call: Call<R>) => Promise<RouteAnswer<R>>,
  options: BindOptions = {},
): BoundAnswer {
  return {
    route,
    // The server parses with this very route's schemas before it calls.
    answer: (context, call) => answer(context, call as Call<R>),
    keepsAlive: options.keepsAlive ?? false,
  };
}

/** `connect` opens what the WebSocket is joined with; every failure before that is thrown. */
export function bindWebSocket<const R extends Route & { websocket: true }>(
  route: R,
  speaks: (query: RouteQuery<R>) => Speech,
  connect: (context: ServiceContext, connecting: Connecting, query: RouteQuery<R>) => Promise<SandboxConnection>,
): BoundWebSocket {
  return {
    route,
    speaks: (query) => speaks(query as RouteQuery<R>),
    connect: (context, connecting, query) => connect(context, connecting, query as RouteQuery<R>),
  };
}
