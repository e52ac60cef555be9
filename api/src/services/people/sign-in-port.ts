// Sign-in as pages and the endpoints below /auth/ use it. Types and failures only; src/sign-in
// implements it over the sign-in library. Nothing else knows the library.
// A LOGIN is what a person has after signing in, for weeks; it is held as a cookie or a refresh
// token. A SESSION TOKEN is the bearer token of the API that a login gets, again and again, for
// about an hour each.
import type { ThrottleKey, ThrottleKind } from '../../rules/access/throttle.ts';
import type { DatabaseTransaction } from '../../store/database/schema.ts';

export interface Caller {
  /** Of the connection, or what a trusted proxy says. */
  address: string;
  userAgent: string | null;
}

export interface Login {
  loginId: string;
  userId: string;
  /**
   * What the holder keeps: the value of the cookie, or a client's refresh token. The database alone
   * does not suffice to make one.
   */
  credential: string;
  expiresAt: Date;
}

export interface SessionToken {
  token: string;
  expiresAt: Date;
}

/** Why sign-in said no. Pages and endpoints show it in their own way. */
export type SignInRefusal =
  | 'wrong_credentials'
  | 'too_many_attempts'
  | 'email_not_verified'
  | 'email_taken'
  | 'password_unfit'
  | 'sign_up_closed'
  | 'link_invalid'
  | 'provider_unavailable'
  | 'provider_refused';

export class SignInError extends Error {
  override readonly name = 'SignInError';
  readonly refusal: SignInRefusal;
  /** With `too_many_attempts`. */
  readonly retryAfterSeconds: number | undefined;

  /** @param message for the person who signs in: never says whether an account exists */
  constructor(refusal: SignInRefusal, message: string, options: { retryAfterSeconds?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.refusal = refusal;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** A device that asks for approval. */
export interface PendingDevice {
  userCode: string;
  /** What the client calls itself. */
  clientId: string;
  status: 'pending' | 'approved' | 'denied';
}

export interface SignIn {
  /**
   * Throttled per account and per address; wrong address and wrong password look the same and take
   * the same time.
   */
  withPassword(credentials: { email: string; password: string }, caller: Caller): Promise<Login>;
  /**
   * Makes an account with a password, in the caller's transaction when there is one. Throws
   * `email_taken`, `password_unfit`.
   */
  createAccount(
    account: { email: string; name: string; password: string; emailVerified: boolean },
    trx?: DatabaseTransaction,
  ): Promise<{ userId: string }>;
  /**
   * Sets the password, ends every login of the user and takes back the approvals of devices, in the
   * caller's transaction when there is one. Throws `password_unfit`.
   */
  setPassword(userId: string, password: string, trx?: DatabaseTransaction): Promise<void>;
  /** Signs a user in whose identity was proven otherwise (a one-time link). */
  createLogin(userId: string, caller: Caller): Promise<Login>;
  /** The login that a credential stands for; null when it is none, has ended or expired. */
  findLogin(credential: string): Promise<{ loginId: string; userId: string } | null>;
  /**
   * Sign-out: the login and all its session tokens are good for nothing from now on, everywhere.
   */
  endLogin(loginId: string): Promise<void>;
  /** A new session token of the login. */
  issueSessionToken(login: { loginId: string; userId: string }): Promise<SessionToken>;

  /**
   * Refuses with `too_many_attempts` what was tried too often: `kind` with each of the keys, which
   * rules/throttle.ts makes and gives limits to. `withPassword` counts itself.
   */
  throttle(kind: ThrottleKind, keys: readonly ThrottleKey[]): Promise<void>;

  /**
   * A device that waits for approval, by the code a person typed (any case, with or without the
   * hyphen); null when there is none.
   */
  findDevice(userCode: string): Promise<PendingDevice | null>;
  /** Throws `link_invalid` when it does not wait any more. */
  decideDevice(userCode: string, userId: string, decision: 'approve' | 'deny'): Promise<void>;

  /** The OIDC provider's name for the button; null when none is configured. */
  readonly oidcName: string | null;
}

/** Name of the cookie that holds a login; `__Host-` where the service is reached by https. */
export function loginCookieName(publicUrl: string): string {
  return publicUrl.startsWith('https://') ? '__Host-berth_login' : 'berth_login';
}
