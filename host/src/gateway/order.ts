// Orders of the host daemon to its guest gateway, and the errors in its responses.
import { CALLS } from '@berth/protocol/calls/all.ts';
import type { CallSpec } from '@berth/protocol/calls/define.ts';
import { HOST_ERRORS, type HostErrorCode } from '@berth/protocol/host.ts';
import { z } from 'zod';
import { GuestRefusal } from '../guest/client.ts';
import { ADDRESS_LIMITS } from '../network/dns/addresses.ts';
import { boundedMessageOf, HostError } from '../vm/host-error.ts';

const endpoint = z.object({ address: z.string(), port: z.int() });

/**
 * Task of the gateway on a connection. `guest`: names a guest's connections; `close` ends them.
 * `call`: a name in {@link GUEST_CALLS}; `open` continues as the raw stream.
 */
export const gatewayOrder = z.discriminatedUnion('do', [
  z.object({
    do: z.literal('reach'),
    guest: z.string(),
    endpoint,
    secret: z.string().nullable(),
    deadlineMs: z.number(),
  }),
  z.object({
    do: z.enum(['call', 'stream', 'open']),
    guest: z.string(),
    endpoint,
    secret: z.string().nullable(),
    deadlineMs: z.number(),
    call: z.string(),
    parts: z.record(z.string(), z.unknown()),
    /** Bytes that follow the order. */
    uploadBytes: z.int().nullable(),
  }),
  z.object({ do: z.literal('close'), guest: z.string() }),
  z.object({
    do: z.literal('answer'),
    guest: z.string(),
    /** Base64. */
    message: z.string(),
    by: z.enum(['udp', 'tcp']),
    servers: z.array(endpoint),
    policy: z.object({ mode: z.enum(['open', 'none', 'allow']), names: z.array(z.string()) }),
  }),
]);
export type GatewayOrder = z.infer<typeof gatewayOrder>;

/** Calls of guest daemons, by name. */
export const GUEST_CALLS: ReadonlyMap<string, CallSpec> = new Map(
  CALLS.filter(({ target }) => target !== 'host').map((call) => [call.name, call]),
);

const codes = Object.keys(HOST_ERRORS) as [HostErrorCode, ...HostErrorCode[]];
const failure = z.object({
  code: z.enum(codes),
  message: z.string().max(4_096),
  errno: z.string().max(64).optional(),
  /** HTTP status of a {@link GuestRefusal}. */
  status: z.int().optional(),
});

export function failureOf(error: unknown): z.infer<typeof failure> {
  const code = error instanceof HostError ? error.code : 'guest_unreachable';
  return {
    code,
    message: boundedMessageOf(error),
    ...(error instanceof HostError && error.errno !== undefined ? { errno: error.errno } : {}),
    ...(error instanceof GuestRefusal ? { status: error.status } : {}),
  };
}

/** The error of a response. Errors that the gateway invents are `guest_unreachable`. */
export function errorIn(payload: Buffer): HostError {
  const { code, message, errno, status } = failure.parse(JSON.parse(payload.toString('utf8')));
  return status === undefined ? new HostError(code, message, { errno }) : new GuestRefusal(status, message);
}

const dnsMessage = z
  .base64()
  .max(Math.ceil(65_535 / 3) * 4)
  .nullable();

/** Response to `answer`, as in {@link Answered}. */
export const answered = z.object({
  answer: dnsMessage,
  withheld: dnsMessage,
  name: z
    .string()
    .max(255)
    .regex(/^[a-z0-9_.-]+$/)
    .nullable(),
  refused: z.boolean(),
  addresses: z
    .array(z.object({ address: z.ipv4(), ttlSeconds: z.int().min(0).max(0xffff_ffff) }))
    .max(ADDRESS_LIMITS.addresses),
});
