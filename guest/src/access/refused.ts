// What the guest daemon refuses a call with, whatever the call is: a status and a sentence.
import type { Secret } from './secret.ts';

/** A request that is refused with this status. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Throws while an identity or a wake is in force by half. */
export function refuseIncomplete(secret: Secret): void {
  if (secret.state === 'incomplete')
    throw new Refused(503, 'the identity of this machine is not applied yet, or not completely');
}

export function unauthorized(): Refused {
  return new Refused(401, 'this call needs the secret of the machine as a bearer token');
}
