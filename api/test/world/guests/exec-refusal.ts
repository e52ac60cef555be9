// Refusals of the scripted host.
import type { HostErrorCode } from '@berth/protocol/host.ts';

export class ExecRefusal extends Error {
  readonly code: HostErrorCode;
  readonly errno: string | undefined;

  constructor(code: HostErrorCode, message: string, errno?: string) {
    super(message);
    this.code = code;
    this.errno = errno;
  }
}
