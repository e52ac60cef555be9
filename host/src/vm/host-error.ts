// Expected failures of the daemon: a protocol error code with a message. Only server/refusal.ts
// maps them to HTTP.
import type { HostErrorBody, HostErrorCode } from '@berth/protocol/host.ts';
import { messageOf } from '@berth/os/errors.ts';

export type Shortage = NonNullable<HostErrorBody['error']['shortage']>;

export class HostError extends Error {
  override readonly name = 'HostError';
  readonly code: HostErrorCode;
  readonly shortage: Shortage | undefined;
  /** With `file_system_error`: the guest kernel's errno. */
  readonly errno: string | undefined;

  constructor(
    code: HostErrorCode,
    message: string,
    options: { shortage?: Shortage; errno?: string | undefined; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.shortage = options.shortage;
    this.errno = options.errno;
  }
}

/**
 * Text of anything thrown, for a reason or a log line; bounded, because a guest may have supplied
 * it.
 */
export function boundedMessageOf(error: unknown): string {
  const text = messageOf(error);
  return text.length > 1_000 ? `${text.slice(0, 1_000)}…` : text;
}
