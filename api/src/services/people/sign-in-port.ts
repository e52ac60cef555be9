// Sign-in interface for pages and the endpoints below /auth/. Types and failures only; src/sign-in
// implements it over the sign-in library. Nothing else knows the library.
//
// LOGIN: a sign-in session. Lasts weeks; held as a cookie or a refresh token. SESSION TOKEN: a
// bearer token for the API. Lasts about an hour; a login gets them repeatedly.
import type { ThrottleKey, ThrottleKind } from '../../rules/access/throttle.ts';
import type { DatabaseTransaction } from '../../store/database/schema.ts';

export interface Caller {
  /** Address of the connection, or as reported by a trusted proxy. */
  address: string;
  userAgent: string | null;
}

export interface Login {
  loginId: string;
  userId: string;
  /** The cookie value, or a client's refresh token. Cannot be made from the database alone. */
  credential: string;
  expiresAt: Date;
}

export interface SessionToken {
  token: string;
  expiresAt: Date;
}

/** Reason of a refusal. Pages and endpoints each present it in their own way. */
export type SignInRefusal =
  | 'wrong_credentials'
  | 'second_factor_required'
  | 'wrong_code'
  | 'passkey_refused'
  | 'factor_conflict'
  | 'too_many_attempts'
  | 'email_not_verified'
  | 'email_taken'
  | 'password_unfit'
  | 'sign_up_closed'
  | 'sign_up_limit'
  | 'link_invalid'
  | 'provider_unavailable'
  | 'provider_refused';

export class SignInError extends Error {
  override readonly name = 'SignInError';
  readonly refusal: SignInRefusal;
  /** Set with `too_many_attempts`. */
  readonly retryAfterSeconds: number | undefined;

  /** @param message shown to the person; never discloses whether an account exists */
  constructor(refusal: SignInRefusal, message: string, options: { retryAfterSeconds?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.refusal = refusal;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

export interface PendingDevice {
  userCode: string;
  /** Name that the client gives itself. */
  clientId: string;
  status: 'pending' | 'approved' | 'denied';
}

export interface SignIn {
  /**
   * Throttled per account and address. Wrong address and wrong password have the same response and
   * timing. Throws `SecondFactorRequired` (factors-port.ts) for an account with an authenticator
   * app.
   */
  withPassword(credentials: { email: string; password: string }, caller: Caller): Promise<Login>;
  /** Creates an account, in `trx` if given. Throws `email_taken`, `password_unfit`. */
  createAccount(
    account: { email: string; name: string; password: string; emailVerified: boolean },
    trx?: DatabaseTransaction,
  ): Promise<{ userId: string }>;
  /**
   * Sets the password, ends every sign-in session of the user and withdraws device approvals, in
   * the caller's transaction if given. Throws `password_unfit`.
   */
  setPassword(userId: string, password: string, trx?: DatabaseTransaction): Promise<void>;
  /** Signs in a user whose identity was proven otherwise (a one-time link). */
  createLogin(userId: string, caller: Caller): Promise<Login>;
  /** The credential's sign-in session; null if invalid, ended or expired. */
  findLogin(credential: string): Promise<{ loginId: string; userId: string } | null>;
  /** Signs out: invalidates the sign-in session and all its session tokens everywhere at once. */
  endLogin(loginId: string): Promise<void>;
  /**
   * Confirms a sign-in session with the account's password; throttled per session. Throws
   * `wrong_credentials`.
   */
  confirmWithPassword(confirmed: { loginId: string; email: string }, password: string, caller: Caller): Promise<void>;
  /** Seconds since the sign-in, or its last confirmation. */
  secondsSinceSignIn(loginId: string): Promise<number>;
  issueSessionToken(login: { loginId: string; userId: string }): Promise<SessionToken>;

  /**
   * Counts an attempt of `kind` for each key and throws `too_many_attempts` over the limit.
   * rules/access/throttle.ts makes keys and defines limits. `withPassword` counts by itself.
   */
  throttle(kind: ThrottleKind, keys: readonly ThrottleKey[]): Promise<void>;

  /** A waiting device by its typed code (any case, hyphen optional); null for none. */
  findDevice(userCode: string): Promise<PendingDevice | null>;
  /** Throws `link_invalid` if the device is no longer waiting. */
  decideDevice(userCode: string, userId: string, decision: 'approve' | 'deny', loginId?: string): Promise<void>;

  /** The OIDC provider's name, for the button; null if none is configured. */
  readonly oidcName: string | null;
}

/** Name of the cookie that holds a login; with `__Host-` if the service uses https. */
export function loginCookieName(publicUrl: string): string {
  return publicUrl.startsWith('https://') ? '__Host-berth_login' : 'berth_login';
}
