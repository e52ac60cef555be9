// A refusal of the guest daemon: a status and a message.
import type { Secret } from './secret.ts';

export class Refused extends Error {
  override readonly name = 'Refused';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Throws while an identity or a wake is only partly applied. */
export function refuseIncomplete(secret: Secret): void {
  if (secret.state === 'incomplete')
    throw new Refused(503, 'the identity of this machine is not applied yet, or not completely');
}

export function unauthorized(): Refused {
  return new Refused(401, 'this call needs the secret of the machine as a bearer token');
}
