// Refusals of the test host.
import type { HostErrorBody, HostErrorCode } from '@berth/protocol/host.ts';

export interface ScriptedRefusal {
  code: HostErrorCode;
  message: string;
  shortage?: HostErrorBody['error']['shortage'];
}

export class Refusal extends Error {
  readonly body: HostErrorBody;

  constructor(code: HostErrorCode, message: string, shortage?: HostErrorBody['error']['shortage']) {
    super(message);
    this.body = { error: { code, message, ...(shortage === undefined ? {} : { shortage }) } };
  }
}
