// Errors of a call to a host: the host's refusals, and three codes for a failed exchange. Callers
// decide by `code`, never by the message.
import type { HostErrorBody, HostErrorCode } from '@berth/protocol/host.ts';

/**
 * `host_unreachable`: no connection, or it broke before the whole response. `host_timeout`: no
 * response before the deadline. `invalid_answer`: a response that violates the protocol. After each
 * of these the verb may or may not have taken effect.
 */
export type HostFailureCode = HostErrorCode | 'host_unreachable' | 'host_timeout' | 'invalid_answer';

type Shortage = NonNullable<HostErrorBody['error']['shortage']>;

/**
 * A failed call to a host. `shortage` comes with `insufficient_capacity`, `errno` with
 * `file_system_error`.
 */
export class HostError extends Error {
  override readonly name = 'HostError';
  readonly code: HostFailureCode;
  readonly shortage: Shortage | undefined;
  readonly errno: string | undefined;

  constructor(
    code: HostFailureCode,
    message: string,
    options: { shortage?: Shortage | undefined; errno?: string | undefined; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.shortage = options.shortage;
    this.errno = options.errno;
  }

  /** True if a retry may succeed: the exchange failed, or the failure says nothing about the VM. */
  get transient(): boolean {
    return TRANSIENT.has(this.code);
  }
}

/** Includes `unauthorized`: replacing the token on both sides must not fail sandboxes meanwhile. */
const TRANSIENT: ReadonlySet<HostFailureCode> = new Set<HostFailureCode>([
  'host_unreachable',
  'host_timeout',
  'invalid_answer',
  'internal',
  'unauthorized',
  'guest_unreachable',
]);

/** The refusal of a stream beyond the limit of the process, or beyond the share of the org. */
export function tooManyStreams(bound: 'full' | 'share', places: number): HostError {
  const limit = `${places} open connections (BERTH_API_STREAMS)`;
  return new HostError(
    'too_many_streams',
    bound === 'full'
      ? `this API replica has reached its limit of ${limit}`
      : `the org has reached its share of this API replica's ${limit}: half of those that other orgs leave`,
  );
}
