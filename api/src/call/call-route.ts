// Runs a call of a contract route, over any transport. Knows no HTTP server: an adapter passes the
// caller's input and sends the response.
// authenticate -> count -> authorize -> read the body -> parse -> run the service -> respond
import { z } from 'zod';
import type { RangeRequest } from '@berth/contract/files/byte-range.ts';
import { HOLD_SECONDS } from '@berth/contract/route/limits.ts';
import { NDJSON, type Route } from '@berth/contract/route/route.ts';
import type { SandboxConnection } from '../services/connections/connections.ts';
import type { Download, Upload } from '../services/files/transfers.ts';
import { admit, readmit, type Admissible, type Admission } from './admission.ts';
import type { AnyCall, BoundAnswer, BoundWebSocket, DialectName } from './bind.ts';
import type { HeldBytes } from './bytes-in-flight.ts';
import type { CallControl } from './control.ts';
import { deprecationHeaders } from './deprecation.ts';
import { failureResponse, logFailure, toCodedError } from './failure.ts';
import { readIdempotencyKey } from './idempotency-key.ts';
import { preferredWaitSeconds, prefersAsync } from './prefer.ts';
import { parseWith, type NameField } from './validation.ts';

/** Body of a route that takes none. Refuses fields, which the route would ignore. */
const noBody = z.strictObject({}).optional();

interface CallInput {
  /** Parameters of the path, decoded. */
  params: Readonly<Record<string, string>>;
  query: unknown;
  /** Values of a header, by its name in lower case. */
  header(name: string): readonly string[];
  /**
   * Reads the body; called once the caller is admitted. Counts its bytes as held. The `Upload` of a
   * route that uploads, unread.
   */
  body(held: HeldBytes): unknown;
  /** Names a field in messages, such as `body.port`; by default with its place. */
  nameOf?: NameField;
}

export interface RouteCall extends Admissible {
  input: CallInput;
  /** Aborts when the caller disconnects. Read only by routes that wait. */
  readonly signal: AbortSignal;
  /**
   * Called right before the service runs, with the response headers so far. May throw to refuse the
   * call.
   */
  onStart?(headers: Readonly<Record<string, string>>): void;
}

export interface RouteResponse {
  status: number;
  headers: Readonly<Record<string, string>>;
  /**
   * JSON: the route's response schema, or the error envelope. Text: the lines of a response with
   * `ndjson`. A stream: of a response with `bytes`.
   */
  body: unknown;
  /** Released by the adapter once the response is sent. */
  held?: HeldBytes;
}

export interface OpenedConnection {
  headers: Readonly<Record<string, string>>;
  connection: SandboxConnection;
  speech: DialectName;
}

/** Never rejects. */
export async function callRoute(control: CallControl, bound: BoundAnswer, call: RouteCall): Promise<RouteResponse> {
  const { route } = bound;
  return await respond(bound, call, async (headers) => {
    const admission = route.auth.length === 0 ? undefined : await admit(control, route, call, headers);
    const held = control.inFlight.open({ orgId: admission?.orgId, address: call.address });
    const hold = holdOf(control, bound, call, admission);
    try {
      const parsed = await readCall(bound, call, admission, held, headers);
      if (hold !== null) {
        headers['preference-applied'] = `wait=${hold.seconds}`;
        parsed.holdMs = hold.seconds * 1_000;
      }
      call.onStart?.(headers);
      const body = await bound.answer(control.context, parsed);
      // The caller may have lost its access meanwhile.
      if (hold !== null) await readmit(control, route, call);
      const { status, ndjson, bytes } = route.response;
      if (bytes !== true) control.onAnswer?.(route, JSON.parse(JSON.stringify(body)));
      const answer =
        bytes === true
          ? answerOf(body as Download, headers)
          : ndjson === true
            ? { headers: { ...headers, 'content-type': NDJSON }, body: linesOf(body as unknown[]) }
            : { headers, body };
      return { status, ...answer, ...(held.bytes === 0 ? {} : { held }) };
    } catch (error) {
      held.release();
      throw error;
    } finally {
      hold?.release();
    }
  });
}

/** The hold that the caller prefers, if the route holds and a place is free. */
function holdOf(
  { context }: CallControl,
  { route }: BoundAnswer,
  { input }: RouteCall,
  admission: Admission | undefined,
): { seconds: number; release: () => void } | null {
  if (route.holds !== true || admission?.orgId === undefined) return null;
  const seconds = preferredWaitSeconds(input.header('prefer'), HOLD_SECONDS);
  if (seconds === undefined) return null;
  const { orgId, session, actor } = admission;
  const release = context.holds.take({ orgId, sandboxId: session?.sandbox_id, callerId: actor.id });
  return release && { seconds, release };
}

/** The same for a route that opens a connection into a sandbox; the adapter closes it. */
export async function connectRoute(
  control: CallControl,
  bound: BoundWebSocket,
  call: RouteCall,
): Promise<OpenedConnection | RouteResponse> {
  const { route } = bound;
  return await respond(bound, call, async (headers) => {
    const { actor, bearer, sandbox } = await admit(control, route, call, headers);
    if (sandbox === undefined) throw new Error(`${route.name} names no sandbox`);
    const { query, params } = partsOf(route, call);
    call.onStart?.(headers);
    const { signal } = call;
    const connection = await bound.connect(control.context, { route, actor, bearer, sandbox, signal }, query, params);
    return { headers, connection, speech: bound.dialectName(query) };
  });
}

async function respond<T>(
  { route }: BoundAnswer | BoundWebSocket,
  call: RouteCall,
  run: (headers: Record<string, string>) => Promise<T>,
): Promise<T | RouteResponse> {
  const headers = deprecationHeaders(route, call.input.params);
  try {
    return await run(headers);
  } catch (error) {
    const coded = toCodedError(error, call.requestId);
    logFailure(coded, call.log);
    const failure = failureResponse(coded);
    return { ...failure, headers: { ...headers, ...failure.headers } };
  }
}

/** A browser never shows the bytes as a page of this origin. */
export function answerOf({ bytes, stream, etag, range }: Download, headers: Readonly<Record<string, string>>) {
  return {
    ...(range === undefined ? {} : { status: 206 }),
    headers: {
      ...headers,
      ...(etag === undefined ? {} : { etag, 'accept-ranges': 'bytes' }),
      ...(range === undefined ? {} : { 'content-range': range }),
      'content-type': 'application/octet-stream',
      'content-length': String(bytes),
      'content-disposition': 'attachment',
      'x-content-type-options': 'nosniff',
    },
    body: stream,
  };
}

/** The headers that choose a range; one that is given twice counts as absent. */
export function rangeIn({ header }: Pick<CallInput, 'header'>): RangeRequest {
  const only = (name: string): string | undefined => (header(name).length === 1 ? header(name)[0] : undefined);
  return { range: only('range'), ifRange: only('if-range') };
}

function linesOf(entries: readonly unknown[]): string {
  return entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
}

function partsOf({ request: { params, query } }: Route, { input }: RouteCall) {
  return {
    params: params === undefined ? undefined : parseWith(params, input.params, 'path', input.nameOf),
    query: query === undefined ? undefined : parseWith(query, input.query, 'query', input.nameOf),
  };
}

async function readCall(
  { route }: BoundAnswer,
  call: RouteCall,
  admission: Admission | undefined,
  held: HeldBytes,
  headers: Record<string, string>,
): Promise<AnyCall> {
  const { input } = call;
  const { request: schemas } = route;
  const given = await input.body(held);
  const respondAsync = route.waits === true && prefersAsync(input.header('prefer'));
  if (respondAsync) headers['preference-applied'] = 'respond-async';
  return {
    ...partsOf(route, call),
    body: route.upload === true ? undefined : parseWith(schemas.body ?? noBody, given, 'body', input.nameOf),
    actor: admission?.actor,
    bearer: admission?.bearer,
    upload: route.upload === true ? (given as Upload) : undefined,
    range: route.ranges === true ? rangeIn(input) : undefined,
    sandbox: admission?.sandbox,
    session: admission?.session,
    holdMs: 0,
    respondAsync,
    idempotencyKey: route.idempotent === true ? readIdempotencyKey(input.header('idempotency-key')) : undefined,
    markReplayed: () => void (headers['idempotent-replayed'] = 'true'),
    hold: (bytes) => held.add(bytes),
    get signal() {
      return call.signal;
    },
  };
}
