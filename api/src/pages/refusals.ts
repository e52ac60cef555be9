// How a page answers when sign-in says no: the same form with the reason, or a page that says so.
import { html } from '../rules/html.ts';
import type { SignInError, SignInRefusal } from '../services/people/sign-in-port.ts';
import { withError, type FormState } from './form.ts';
import { shown, type ShownPage } from './site.ts';

const STATUS: { readonly [refusal in SignInRefusal]: number } = {
  wrong_credentials: 400,
  too_many_attempts: 429,
  email_not_verified: 400,
  email_taken: 400,
  password_unfit: 400,
  sign_up_closed: 403,
  link_invalid: 410,
  provider_unavailable: 503,
  provider_refused: 400,
};

/** The field that a refusal is about, in the forms that have it. */
const FIELDS: Partial<Record<SignInRefusal, string>> = { email_taken: 'email', password_unfit: 'password' };

/** What is done about it. */
const NEXT: Partial<Record<SignInRefusal, string>> = {
  email_not_verified: ' A mail with a link that verifies it is on its way to you.',
};

/** What the page with the form is answered with: status and headers. */
export function statusOf(error: SignInError): Pick<ShownPage, 'status' | 'retryAfterSeconds' | 'failed'> {
  return { status: STATUS[error.refusal], retryAfterSeconds: error.retryAfterSeconds, failed: true };
}

/** The form as it was sent, with what sign-in said about it. */
export function refusedForm(values: Readonly<Record<string, string>>, error: SignInError): FormState {
  return withError(values, FIELDS[error.refusal] ?? null, sentence(error.message) + (NEXT[error.refusal] ?? ''));
}

/** A page for a link that does not work (any more). */
export function goneLink(next: ReturnType<typeof html>): ShownPage {
  return shown(
    'This link does not work',
    html`<p>It was used already, has expired, or was not copied whole.</p>
      ${next}`,
    { status: 410 },
  );
}

/** Messages begin in lower case, as they stand behind a colon elsewhere. */
export function sentence(message: string): string {
  const first = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}
