// What clients without pages of ours need of sign-in: devices, refreshes, revocations, the way to
// the OIDC provider and back. Types and failures only; src/sign-in implements it,
// src/http/auth-endpoints.ts speaks OAuth over it.
import {
  SignInError,
  type Caller,
  type Login,
  type SessionToken,
  type SignIn,
  type SignInRefusal,
} from './sign-in-port.ts';

/** A device's answer to its request (RFC 8628, section 3.2). */
export interface DeviceRequest {
  deviceCode: string;
  userCode: string;
  verificationUri: string;
  verificationUriComplete: string;
  expiresInSeconds: number;
  intervalSeconds: number;
}

/** A login with a new session token. */
export interface Refreshed {
  login: Login;
  sessionToken: SessionToken & { expiresInSeconds: number };
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

/** Why the way to the OIDC provider, or the way back, ended. */
export class OidcRefusal extends SignInError {
  /** Where the person wanted to go, as far as it is known. */
  readonly returnTo: string | null;

  constructor(refusal: SignInRefusal, message: string, options: { returnTo?: string | null; cause?: unknown } = {}) {
    super(refusal, message, { cause: options.cause });
    this.returnTo = options.returnTo ?? null;
  }
}

export interface ClientSignIn extends SignIn {
  /** Whether a client of this name is one of ours. */
  isClient(clientId: string): boolean;
  /** Throttled by address. */
  requestDevice(clientId: string, caller: Caller): Promise<DeviceRequest>;
  /** A device's poll. Throws {@link DeviceRefusal} until a person has approved; works once. */
  redeemDevice(device: { deviceCode: string; clientId: string }, caller: Caller): Promise<Refreshed>;
  /**
   * Another session token of a login, which lasts longer from now on; null when the credential is
   * none, or the login has ended.
   */
  refresh(credential: string): Promise<Refreshed | null>;
  /** Ends the login of a credential or of a session token; nothing happens when it is neither. */
  revoke(token: string): Promise<void>;
  /**
   * Sends a browser to the OIDC provider. Throws {@link OidcRefusal} `provider_unavailable`, also
   * when none is configured.
   */
  beginOidc(returnTo: string): Promise<{ location: string; setCookies: string[] }>;
  /** Takes a browser back from there. Throws {@link OidcRefusal}. */
  finishOidc(
    query: Record<string, string>,
    cookieHeader: string | undefined,
    caller: Caller,
  ): Promise<{ login: Login; returnTo: string }>;
}
