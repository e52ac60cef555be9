// Interface of the second factor for pages. Types and failures only; src/sign-in implements it.
import type { PasskeySet } from './passkeys-port.ts';
import { SignInError, type Caller, type Login, type SignIn } from './sign-in-port.ts';

/** An authenticator app in use. */
export interface TotpState {
  since: Date;
  recoveryCodesLeft: number;
}

/** An authenticator app to be confirmed with its first code. */
export interface TotpEnrolment {
  /** In base32, to be typed. */
  secret: string;
  /** Contains the secret, for a QR code. */
  uri: string;
  /** The secret for the server alone, to be sent with the code. Expires. */
  sealed: string;
}

export type CodeUse = { kind: 'totp' } | { kind: 'recovery'; left: number };

/** The password is right, and the account needs its second factor. */
export class SecondFactorRequired extends SignInError {
  /** Sent back with the code. Expires, and becomes invalid with a new password. */
  readonly pending: string;

  constructor(pending: string) {
    super('second_factor_required', 'this account needs a code of its authenticator app');
    this.pending = pending;
  }
}

export interface SecondFactor {
  /** null: no authenticator app. */
  totpState(userId: string): Promise<TotpState | null>;
  beginTotp(user: { userId: string; email: string }): TotpEnrolment;
  /** An enrolment by its sealed form. Throws `link_invalid`. */
  readTotp(user: { userId: string; email: string }, sealed: string): TotpEnrolment;
  /**
   * Confirms an enrolment and returns the recovery codes, which are not stored. Throws
   * `link_invalid`, `wrong_code`, `factor_conflict`.
   */
  enableTotp(userId: string, sent: { sealed: string; code: string }, caller: Caller): Promise<string[]>;
  /** Also deletes the recovery codes. Returns false if there is no authenticator app. */
  disableTotp(userId: string): Promise<boolean>;
  /** Throws `factor_conflict` without an authenticator app. */
  replaceRecoveryCodes(userId: string): Promise<string[]>;
}

export interface PageSignIn extends SignIn {
  readonly factors: SecondFactor;
  readonly passkeys: PasskeySet;
  /** Confirms a sign-in session of a user whose identity was proven otherwise (a passkey). */
  confirmLogin(loginId: string): Promise<void>;
  /** Completes {@link SecondFactorRequired}. Throws `link_invalid`, `wrong_code`. */
  withSecondFactor(pending: string, code: string, caller: Caller): Promise<{ login: Login; use: CodeUse }>;
  /** Confirms a sign-in session with a code. Throws `wrong_code`. */
  confirmWithCode(confirmed: { loginId: string; userId: string }, code: string, caller: Caller): Promise<CodeUse>;
}
