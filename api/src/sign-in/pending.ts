// Steps of sign-in that wait for the browser: sealed values that the browser keeps and only this
// service reads. They expire, and leave no row if abandoned.
import { openText, sealText, UnsealError } from '../services/context/sealed.ts';
import type { DerivedKeys } from '../services/context/secret-key.ts';
import { SignInError } from '../services/people/sign-in-port.ts';

export const PENDING_MINUTES = 10;

/** @param owner purpose and holder; another owner cannot open the value */
export function sealPending(keys: DerivedKeys, owner: string, text: string): string {
  const until = Date.now() + PENDING_MINUTES * 60_000;
  return sealText(keys, owner, JSON.stringify({ until, text })).toString('base64url');
}

/** Throws `link_invalid`. */
export function openPending(keys: DerivedKeys, owner: string, sealed: string): string {
  try {
    const opened = openText(keys, owner, Buffer.from(sealed, 'base64url'));
    const { until, text } = JSON.parse(opened) as { until: number; text: string };
    if (until > Date.now()) return text;
  } catch (error) {
    if (!(error instanceof UnsealError)) throw error;
  }
  throw new SignInError('link_invalid', `this took longer than ${PENDING_MINUTES} minutes; start again`);
}
