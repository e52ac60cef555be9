// An error response of the test server, with a code of the contract.
import { ERRORS } from '../../generated/service-tables.ts';

export type KnownCode = keyof typeof ERRORS;

export class Refusal extends Error {
  readonly code: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Turn of `message_delivery_uncertain`. */
  readonly turnId: string | undefined;

  constructor(
    code: KnownCode,
    message: string = ERRORS[code].meaning,
    headers: Readonly<Record<string, string>> = {},
    turnId?: string,
  ) {
    super(message);
    this.code = code;
    this.status = ERRORS[code].status;
    this.headers = headers;
    this.turnId = turnId;
  }
}
