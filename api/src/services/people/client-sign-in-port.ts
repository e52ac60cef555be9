// Sign-in interface for clients without server-rendered pages: devices, refreshes, revocations,
// OIDC redirects. Types and failures only; src/sign-in implements it, src/http/auth-endpoints.ts
// speaks OAuth over it.
import type { PageSignIn } from './factors-port.ts';
import { SignInError, type Caller, type Login, type SessionToken, type SignInRefusal } from './sign-in-port.ts';

/** Response to a device's request (RFC 8628, section 3.2). */
export interface DeviceRequest {
  deviceCode: string;
  userCode: string;
  verificationUri: string;
  verificationUriComplete: string;
  expiresInSeconds: number;
  intervalSeconds: number;
}

/** A sign-in session with a new session token. */
export interface Refreshed {
  login: Login;
  sessionToken: SessionToken & { expiresInSeconds: number };
}

/** The same for a client, with the refresh token to use next. */
export interface ClientRefreshed extends Refreshed {
  refreshToken: string;
}

/** Error codes of OAuth's token endpoint (RFC 6749, section 5.2; RFC 8628, section 3.5). */
export type DeviceRefusalCode =
  | 'authorization_pending'
  | 'slow_down'
  | 'access_denied'
  | 'expired_token'
  | 'invalid_grant';

export class DeviceRefusal extends Error {
  override readonly name = 'DeviceRefusal';
  readonly code: DeviceRefusalCode;

  constructor(code: DeviceRefusalCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Failure of the redirect to the OIDC provider or back. */
export class OidcRefusal extends SignInError {
  /** The person's destination, if known. */
  readonly returnTo: string | null;

  constructor(refusal: SignInRefusal, message: string, options: { returnTo?: string | null; cause?: unknown } = {}) {
    super(refusal, message, { cause: options.cause });
    this.returnTo = options.returnTo ?? null;
  }
}

export interface ClientSignIn extends PageSignIn {
  /** True for a client id of this service. */
  isClient(clientId: string): boolean;
  /** Throttled by address. */
  requestDevice(clientId: string, caller: Caller): Promise<DeviceRequest>;
  /** Serves a device's poll. Throws {@link DeviceRefusal} until a person approves; works once. */
  redeemDevice(device: { deviceCode: string; clientId: string }, caller: Caller): Promise<ClientRefreshed>;
  /**
   * Issues another session token for a console cookie and extends the sign-in session; null if the
   * credential is invalid or the sign-in session ended.
   */
  refresh(credential: string): Promise<Refreshed | null>;
  /**
   * The same for a refresh token, which is spent. A token spent within the grace period returns the
   * same successor; one spent earlier ends the sign-in session.
   */
  redeemRefreshToken(refreshToken: string): Promise<ClientRefreshed | null>;
  /** Ends the sign-in session of a credential or session token; ignores other text. */
  revoke(token: string): Promise<void>;
  /**
   * Redirects a browser to the OIDC provider. Throws {@link OidcRefusal} `provider_unavailable`,
   * also if none is configured.
   */
  beginOidc(returnTo: string): Promise<{ location: string; setCookies: string[] }>;
  /** Handles the provider's redirect back. Throws {@link OidcRefusal}. */
  finishOidc(
    query: Record<string, string>,
    cookieHeader: string | undefined,
    caller: Caller,
  ): Promise<{ login: Login; returnTo: string }>;
}
