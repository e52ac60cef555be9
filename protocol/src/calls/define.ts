// Definition of a call between two daemons: API to host daemon, host daemon to guest daemon, or API
// through the host daemon to the guest daemon. Paths, schemas, limits and deadlines are defined
// only in this folder.
import { z } from 'zod';
import { vmId, type HostErrorCode } from '../host.ts';

export interface CallSpec {
  readonly name: string;
  /**
   * `host`: from the API to the host daemon. `guest`: from the host daemon to the guest daemon.
   * `pass-through`: from the API to the guest daemon; the host daemon checks that the VM runs,
   * applies the limits of the call and forwards it with the secret of the guest.
   */
  readonly target: 'host' | 'guest' | 'pass-through';
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** Path at the target; a host daemon serves a pass-through call below `/vms/{vmId}`. */
  readonly path: string;
  /** Path parameters, in braces in the path. */
  readonly params?: z.ZodObject;
  readonly query?: z.ZodType;
  readonly body?: z.ZodObject;
  /** The request body is bytes, with a Content-Length. */
  readonly upload?: true;
  /**
   * `json`: a JSON body. `keepalive`: headers early, spaces, then a JSON body. `bytes`:
   * raw bytes. `upgrade`: 101, then a raw stream whose directions end separately.
   */
  readonly form: 'json' | 'keepalive' | 'bytes' | 'upgrade';
  /** Value of the `Upgrade` header. */
  readonly upgrade?: string;
  readonly response?: z.ZodType;
  /** True if the response matches a request with an upload of that size. */
  readonly confirms?: (response: never, uploadBytes: number) => boolean;
  /** Limit of the request body. */
  readonly requestBytes?: number;
  /** Limit of the response body, spaces included. */
  readonly responseBytes?: number;
  /** Time limit of the target for its own work. */
  readonly deadlineMs: number;
  /** Integer field of the body, in seconds, added to the deadline. */
  readonly timeoutField?: string;
  /** Added to the deadline by each caller in the chain, for connection and response. */
  readonly marginMs: number;
  /**
   * The request carries the sandbox's epoch, in the body or, without a body, in the query. A host
   * refuses an epoch older than the newest it has seen for the VM.
   */
  readonly fenced?: true;
  /** A repeated call has the same effect, so the call is retried when its connection was stale. */
  readonly repeatable?: true;
  /** Error codes with which the guest daemon may refuse the call. */
  readonly errors?: readonly HostErrorCode[];
  /**
   * Refusals that the guest daemon expresses as a status only, with code and message for the API.
   */
  readonly statuses?: Readonly<Record<number, readonly [HostErrorCode, string]>>;
  /** Protocol version that introduced the call. */
  readonly since: number;
}

export function defineCall<const C extends CallSpec>(call: C): C {
  return call;
}

/** Interval of the spaces of a keep-alive response. */
export const KEEPALIVE_SPACE_MS = 10_000;

const epoch = z.int().min(1);

type Output<S> = S extends z.ZodType ? z.output<S> : unknown;
type Part<C, K extends string> = C extends Record<K, infer S extends z.ZodType> ? Record<K, z.output<S>> : unknown;
type Path<C extends CallSpec> = C['target'] extends 'pass-through' ? `/vms/{vmId}${C['path']}` : C['path'];

/** JSON body of the response of a call. */
export type ResponseOf<C extends CallSpec> = Output<C['response']>;

/** Query, path parameters and JSON body of a call. */
export type PartsOf<C extends CallSpec> = Part<C, 'params'> & Part<C, 'query'> & Part<C, 'body'>;

/** Request of a call as sent to the host daemon. */
export type HostRequestOf<C extends CallSpec> = PartsOf<C> &
  (Path<C> extends `${string}{vmId}${string}` ? { vmId: string } : unknown) &
  (C extends { fenced: true } ? { epoch: number } : unknown);

/** Daemons that serve calls. */
export type Side = 'host' | 'guest';

export function pathOf({ target, path }: CallSpec, side: Side): string {
  return side === 'host' && target === 'pass-through' ? `/vms/{vmId}${path}` : path;
}

/** Deadline of a caller on `side`: the target's, plus the margin of each caller in the chain. */
export function deadlineOf(call: CallSpec, side: Side, body?: unknown): number {
  const seconds = call.timeoutField === undefined ? 0 : Number((body as Record<string, unknown>)[call.timeoutField]);
  const callers = side === 'host' && call.target === 'pass-through' ? 2 : 1;
  return call.deadlineMs + seconds * 1_000 + callers * call.marginMs;
}

/** JSON body of a call to the host daemon, with the epoch if it is fenced. */
export function hostBodyOf<C extends CallSpec & { body: z.ZodObject }>(
  call: C,
): z.ZodType<z.output<C['body']> & (C extends { fenced: true } ? { epoch: number } : unknown)>;
export function hostBodyOf({ body, fenced }: CallSpec): z.ZodType | undefined;
export function hostBodyOf({ body, fenced }: CallSpec): z.ZodType | undefined {
  return fenced ? body?.extend({ epoch }) : body;
}

/** Query of a fenced call without a body. */
export const epochQuery = z.strictObject({ epoch: z.coerce.number<string>().pipe(epoch) });

/** Schemas of the parts of a request as sent to the host daemon. */
export function hostSchemas(call: CallSpec): HostSchemas {
  const { params, query, body, fenced } = call;
  return {
    params: { vmId, ...params?.shape },
    query: fenced && body === undefined ? epochQuery : query,
    body: hostBodyOf(call),
  };
}

interface HostSchemas {
  params: Readonly<Record<string, z.ZodType>>;
  query: z.ZodType | undefined;
  body: z.ZodType | undefined;
}
