// What a call to a host can fail with: the host's own refusals, and three codes for a host that
// could not be asked. Callers decide on `code`, never on the message; the message is for people.
import type { HostErrorBody, HostErrorCode } from '@berth/protocol/host.ts';

/**
 * `host_unreachable`: no connection, or it broke before the whole answer was here. `host_timeout`:
 * no answer before the deadline. `invalid_answer`: an answer that is not the host protocol. After
 * each of these the verb may or may not have taken effect.
 */
export type HostFailureCode = HostErrorCode | 'host_unreachable' | 'host_timeout' | 'invalid_answer';

type Shortage = NonNullable<HostErrorBody['error']['shortage']>;

/**
 * A call to a host failed. `shortage` comes with `insufficient_capacity`, `errno` with
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

  /**
   * True when the same call may succeed later: the host could not be asked, or failed in a way that
   * says nothing about the VM.
   */
  get transient(): boolean {
    return TRANSIENT.has(this.code);
  }
}

/**
 * `unauthorized` is among them: a token that is being replaced on both sides must not fail the
 * sandboxes of that moment.
 */
const TRANSIENT: ReadonlySet<HostFailureCode> = new Set<HostFailureCode>([
  'host_unreachable',
  'host_timeout',
  'invalid_answer',
  'internal',
  'unauthorized',
  'guest_unreachable',
]);
