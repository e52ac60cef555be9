// Page responses to sign-in refusals: the same form with the reason, or an error page.
import { html } from '../../rules/html.ts';
import type { SignInError, SignInRefusal } from '../../services/people/sign-in-port.ts';
import { withError, type FormState } from './form.ts';
import { shown, type ShownPage } from './site.ts';

const STATUS: { readonly [refusal in SignInRefusal]: number } = {
  wrong_credentials: 400,
  second_factor_required: 400,
  wrong_code: 400,
  passkey_refused: 400,
  factor_conflict: 409,
  too_many_attempts: 429,
  email_not_verified: 400,
  email_taken: 400,
  password_unfit: 400,
  sign_up_closed: 403,
  sign_up_limit: 429,
  link_invalid: 410,
  provider_unavailable: 503,
  provider_refused: 400,
};

/** Field of each refusal, in forms that have it. */
const FIELDS: Partial<Record<SignInRefusal, string>> = {
  wrong_code: 'code',
  email_taken: 'email',
  password_unfit: 'password',
};

/** Text about the next step. */
const NEXT: Partial<Record<SignInRefusal, string>> = {
  email_not_verified: ' A mail with a link that verifies it is on its way to you.',
};

/** Status and headers of the page with the form. */
export function statusOf(error: SignInError): Pick<ShownPage, 'status' | 'retryAfterSeconds' | 'failed'> {
  return { status: STATUS[error.refusal], retryAfterSeconds: error.retryAfterSeconds, failed: true };
}

/** The submitted form with the refusal's message. */
export function refusedForm(values: Readonly<Record<string, string>>, error: SignInError): FormState {
  return withError(values, FIELDS[error.refusal] ?? null, sentence(error.message) + (NEXT[error.refusal] ?? ''));
}

/** A page for an invalid or expired link. */
export function goneLink(next: ReturnType<typeof html>): ShownPage {
  return shown(
    'This link does not work',
    html`<p>The link was already used, has expired, or is incomplete.</p>
      ${next}`,
    { status: 410 },
  );
}

/** Capitalises a message, which starts in lower case to follow a colon elsewhere. */
export function sentence(message: string): string {
  const first = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}
