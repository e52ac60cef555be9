// Fields shared by several forms: schemas and labels.
import { EMAIL_CHARACTERS, NAME_CHARACTERS, PASSWORD_CHARACTERS } from '@berth/contract/route/limits.ts';
import { z } from 'zod';
import { html, type Html } from '../../rules/html.ts';
import { field, type FormState } from './form.ts';

/** Excludes line breaks, NUL, other control characters, and text that UTF-8 cannot encode. */
const ONE_LINE = /^[^\p{Cc}\p{Cs}]*$/u;
const STORABLE = /^[^\0\p{Cs}]*$/u;
/** Length limit of a password at sign-in. A password too long to be set is simply wrong. */
const ANY_PASSWORD_CHARACTERS = 1_024;

/** Trimmed text without line breaks. */
function line(missing: string, max: number) {
  return z
    .string(missing)
    .trim()
    .min(1, missing)
    .max(max, `Use at most ${max} characters`)
    .regex(ONE_LINE, 'Remove line breaks and control characters');
}

/** Address of an account that may not exist. Not validated, only looked up. */
export const knownEmail = line('Enter your email address', EMAIL_CHARACTERS).toLowerCase();

export const newEmail = z
  .string('Enter your email address')
  .trim()
  .min(1, 'Enter your email address')
  .toLowerCase()
  .pipe(
    z
      .email('Enter an email address like name@example.com')
      .max(EMAIL_CHARACTERS, `Use at most ${EMAIL_CHARACTERS} characters`),
  );

export const personName = line('Enter your name', NAME_CHARACTERS);

/** Not trimmed: spaces belong to a password. */
export const currentPassword = z
  .string('Enter your password')
  .min(1, 'Enter your password')
  .max(ANY_PASSWORD_CHARACTERS, `No password has more than ${ANY_PASSWORD_CHARACTERS} characters`);

const newPassword = z
  .string('Choose a password')
  .min(1, 'Choose a password')
  .min(PASSWORD_CHARACTERS.min, `Use at least ${PASSWORD_CHARACTERS.min} characters`)
  .max(PASSWORD_CHARACTERS.max, `Use at most ${PASSWORD_CHARACTERS.max} characters`)
  .regex(STORABLE, 'Remove characters that cannot be stored');

/** A code of an authenticator app, or a recovery code. */
export const oneTimeCode = line('Enter the code', 40);

/** Hidden values: a link's token, a return path. Validated elsewhere. */
export const unseen = z.string().max(2_048).catch('');

/** JSON from the browser's WebAuthn interface. */
export const passkeyCredential = z.string().max(12_288).catch('');

/** Schema of {@link newPasswordFields}. */
export const newPasswordShape = { password: newPassword, repeat: z.string('Repeat the password') };

/** Error for a schema with {@link newPasswordShape}. */
export const REPEATED = { path: ['repeat'], error: 'The two passwords are not the same' };

export function isRepeated({ password, repeat }: { password: string; repeat: string }): boolean {
  return password === repeat;
}

export function newPasswordFields(state: FormState): Html {
  const maxLength = PASSWORD_CHARACTERS.max;
  return html`${field(state, {
    name: 'password',
    label: 'Password',
    type: 'password',
    autocomplete: 'new-password',
    hint: `At least ${PASSWORD_CHARACTERS.min} characters. A few words in a row are easier to remember than symbols.`,
    maxLength,
  })}
  ${field(state, {
    name: 'repeat',
    label: 'Repeat the password',
    type: 'password',
    autocomplete: 'new-password',
    maxLength,
  })}`;
}

/** The password of an existing account. */
export function passwordField(state: FormState): Html {
  return field(state, {
    name: 'password',
    label: 'Password',
    type: 'password',
    autocomplete: 'current-password',
    maxLength: ANY_PASSWORD_CHARACTERS,
  });
}

export function codeField(state: FormState, hint: string): Html {
  return field(state, {
    name: 'code',
    label: 'Code',
    type: 'text',
    autocomplete: 'one-time-code',
    hint,
    maxLength: 40,
    code: true,
  });
}

/** @param address shown read-only */
export function fixedEmailField(state: FormState, address: string): Html {
  return field(state, {
    name: 'email',
    label: 'Email address',
    type: 'email',
    autocomplete: 'username',
    maxLength: EMAIL_CHARACTERS,
    value: address,
    fixed: true,
  });
}

export function nameField(state: FormState, value?: string): Html {
  return field(state, {
    name: 'name',
    label: 'Your name',
    type: 'text',
    autocomplete: 'name',
    maxLength: NAME_CHARACTERS,
    ...(value === undefined ? {} : { value }),
  });
}
