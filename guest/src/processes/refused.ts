import { PROCESS_ERRORS, type ProcessErrorCode } from '@berth/protocol/guest-limits.ts';

/** A call of a process that cannot be carried out. */
export class ProcessRefused extends Error {
  override readonly name = 'ProcessRefused';
  readonly code: ProcessErrorCode;
  readonly status: number;

  constructor(code: ProcessErrorCode, message: string) {
    super(message);
    this.code = code;
    this.status = PROCESS_ERRORS[code];
  }
}
