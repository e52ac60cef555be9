// Implements sign-in over the sign-in library and the rows beside it. Owns password rules,
// throttling, and lifetimes of session tokens and sign-in sessions. Endpoints and pages own the
// wire format.
import { NAME_CHARACTERS } from '@berth/contract/route/limits.ts';
import { isAPIError } from 'better-auth/api';
import type { OidcConfig } from '../config/config.ts';
import { accountKey, addressKey, loginKey, type ThrottleKey, type ThrottleKind } from '../rules/access/throttle.ts';
import { newToken, tokenKind, tokenSha256 } from '../services/access/bearer-token.ts';
import {
  DeviceRefusal,
  OidcRefusal,
  type ClientSignIn,
  type DeviceRefusalCode,
  type DeviceRequest,
  type Refreshed,
} from '../services/people/client-sign-in-port.ts';
import type { Settings } from '../services/context/settings.ts';
import { SignInError, type Caller, type Login, type PendingDevice } from '../services/people/sign-in-port.ts';
import { newId } from '../store/database/ids.ts';
import type { DatabaseTransaction } from '../store/database/schema.ts';
import { deleteLogin, findSessionTokenByHash, insertSessionToken } from '../store/access/session-tokens.ts';
import {
  decideDevice,
  deleteLoginsOfUser,
  deleteOldestSessionTokens,
  denyApprovedDevices,
  findApproval,
  findDevice,
  findPassword,
  insertNewUser,
  isPassword,
  putPassword,
} from '../store/people/sign-in.ts';
import { openDeviceCode, sealDeviceCode, shownUserCode, storedUserCode } from './device-code.ts';
import { callerHeaders, DEVICE_CLIENTS, openLibrary, type Library, type LibraryParts } from './library.ts';
import { OidcSignIn } from './oidc.ts';
import { fitPasswordHash, isPasswordOf, spendTimeOnPassword } from './password.ts';
import { countAttempts } from './tries.ts';

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
/**
 * Session tokens kept per sign-in session, newest first: endless refreshes do not fill the table.
 */
const MOST_SESSION_TOKENS = 50;
/** The library's token and its signature; text of another form needs no query. */
const CREDENTIAL_FORM = /^[0-9A-Za-z_-]{1,128}\.[0-9A-Za-z_-]{43}$/;
const PG_FOREIGN_KEY_VIOLATION = '23503';

interface SignInParts extends LibraryParts {
  settings: Pick<Settings, 'publicUrl' | 'signUp' | 'sessionTokenMinutes'>;
  oidc: OidcConfig | null;
}

/** Opens sign-in; contacts neither the database nor the OIDC provider. */
export function openSignIn(parts: SignInParts): ClientSignIn {
  return new LibrarySignIn(parts);
}

class LibrarySignIn implements ClientSignIn {
  readonly #parts: SignInParts;
  readonly #library: Library;
  readonly #oidc: OidcSignIn | null;
  readonly #deviceKey: Buffer;
  readonly #throttleKey: Buffer;

  constructor(parts: SignInParts) {
    this.#parts = parts;
    this.#library = openLibrary(parts, null);
    this.#oidc = parts.oidc === null ? null : new OidcSignIn(parts, parts.oidc);
    this.#deviceKey = parts.secretKey.derive('device-code');
    this.#throttleKey = parts.secretKey.derive('throttle');
  }

  get oidcName(): string | null {
    return this.#oidc?.name ?? null;
  }

  async withPassword({ email: given, password }: { email: string; password: string }, caller: Caller): Promise<Login> {
    const email = normalEmail(given);
    await this.throttle('sign-in', [addressKey(caller.address), accountKey(email)]);
    const known = await findPassword(this.#parts.db, email);
    if (known === undefined) {
      await spendTimeOnPassword(password);
      throw wrongCredentials();
    }
    const { userId, passwordHash } = known;
    if (!(await isPasswordOf(passwordHash, password))) throw wrongCredentials();
    if (!known.emailVerified) throw new SignInError('email_not_verified', 'your email address is not verified yet');
    const login = await this.createLogin(userId, caller);
    // A concurrent password change ends the sign-in sessions that it sees. The new session may have
    // been created just after that, so check again.
    if (await isPassword(this.#parts.db, userId, passwordHash)) return login;
    await this.endLogin(login.loginId);
    throw wrongCredentials();
  }

  async createAccount(
    account: { email: string; name: string; password: string; emailVerified: boolean },
    trx?: DatabaseTransaction,
  ): Promise<{ userId: string }> {
    const passwordHash = await fitPasswordHash(account.password);
    const userId = newId('user');
    const email = normalEmail(account.email);
    await this.#within(trx, async (within) => {
      const name = account.name.trim().slice(0, NAME_CHARACTERS);
      const made = await insertNewUser(within, { id: userId, name, email, emailVerified: account.emailVerified });
      if (!made) throw new SignInError('email_taken', 'an account with this email address already exists');
      await putPassword(within, userId, passwordHash);
    });
    return { userId };
  }

  async setPassword(userId: string, password: string, trx?: DatabaseTransaction): Promise<void> {
    const passwordHash = await fitPasswordHash(password);
    await this.#within(trx, async (within) => {
      if (!(await putPassword(within, userId, passwordHash)))
        throw new Error(`there is no user ${userId} to set a password for`);
      await deleteLoginsOfUser(within, userId);
      await denyApprovedDevices(within, userId);
    });
  }

  async createLogin(userId: string, caller: Caller): Promise<Login> {
    const { token } = await this.#library.auth.api.createLogin({ body: { userId }, headers: callerHeaders(caller) });
    return await this.#requireLogin(await this.#library.credentialOf(token));
  }

  async findLogin(credential: string): Promise<{ loginId: string; userId: string } | null> {
    const login = await this.#readLogin(credential, { prolong: false });
    return login === null ? null : { loginId: login.loginId, userId: login.userId };
  }

  async endLogin(loginId: string): Promise<void> {
    await deleteLogin(this.#parts.db, loginId);
  }

  async issueSessionToken({
    loginId,
    userId,
  }: {
    loginId: string;
    userId: string;
  }): Promise<Refreshed['sessionToken']> {
    const token = newToken('session');
    const minutes = this.#parts.settings.sessionTokenMinutes;
    try {
      const { expiresAt } = await insertSessionToken(this.#parts.db, {
        loginId,
        userId,
        tokenSha256: tokenSha256(token),
        minutes,
      });
      await deleteOldestSessionTokens(this.#parts.db, loginId, MOST_SESSION_TOKENS);
      return { token, expiresAt, expiresInSeconds: minutes * 60 };
    } catch (error) {
      // Signed out concurrently.
      if ((error as { code?: unknown }).code === PG_FOREIGN_KEY_VIOLATION) throw loginEnded();
      throw error;
    }
  }

  async throttle(kind: ThrottleKind, keys: readonly ThrottleKey[]): Promise<void> {
    await countAttempts(this.#parts.db, this.#throttleKey, kind, keys);
  }

  async findDevice(userCode: string): Promise<PendingDevice | null> {
    const stored = storedUserCode(userCode);
    const row = stored === null ? undefined : await findDevice(this.#parts.db, stored);
    if (row === undefined) return null;
    const status = row.status === 'approved' || row.status === 'denied' ? row.status : 'pending';
    return { userCode: shownUserCode(row.userCode), clientId: row.clientId ?? '', status };
  }

  async decideDevice(userCode: string, userId: string, decision: 'approve' | 'deny'): Promise<void> {
    const stored = storedUserCode(userCode);
    const status = decision === 'approve' ? 'approved' : 'denied';
    if (stored !== null && (await decideDevice(this.#parts.db, stored, userId, status))) return;
    throw new SignInError('link_invalid', 'no device is waiting with this code; restart the sign-in on the device');
  }

  isClient(clientId: string): boolean {
    return DEVICE_CLIENTS.has(clientId);
  }

  async requestDevice(clientId: string, caller: Caller): Promise<DeviceRequest> {
    await this.throttle('device-request', [addressKey(caller.address)]);
    const made = await this.#library.auth.api.deviceCode({ body: { client_id: clientId } });
    const userCode = shownUserCode(made.user_code);
    const complete = new URL(made.verification_uri);
    complete.searchParams.set('user_code', userCode);
    return {
      deviceCode: sealDeviceCode(this.#deviceKey, made.device_code),
      userCode,
      verificationUri: made.verification_uri,
      verificationUriComplete: complete.href,
      expiresInSeconds: made.expires_in,
      intervalSeconds: made.interval,
    };
  }

  async redeemDevice(
    { deviceCode, clientId }: { deviceCode: string; clientId: string },
    caller: Caller,
  ): Promise<Refreshed> {
    const stored = openDeviceCode(this.#deviceKey, deviceCode);
    if (stored === null) throw new DeviceRefusal('invalid_grant', 'this device code is unknown or incomplete');
    const approval = await findApproval(this.#parts.db, stored);
    try {
      const { access_token: token } = await this.#library.auth.api.deviceToken({
        body: { grant_type: DEVICE_GRANT, device_code: stored, client_id: clientId },
        headers: callerHeaders(caller),
      });
      const login = await this.#requireLogin(await this.#library.credentialOf(token));
      // A concurrent password change withdraws the approval, but this sign-in session may have been
      // created just after that, so check again. Without an earlier approval, the approval was
      // given a moment ago.
      if (approval !== undefined && !(await isPassword(this.#parts.db, login.userId, approval.passwordHash))) {
        await this.endLogin(login.loginId);
        throw new DeviceRefusal('access_denied', 'a new password revoked the approval; restart the sign-in');
      }
      return await this.#withSessionToken(login);
    } catch (error) {
      throw deviceRefusal(error) ?? error;
    }
  }

  async refresh(credential: string): Promise<Refreshed | null> {
    const login = await this.#readLogin(credential, { prolong: true });
    if (login === null) return null;
    await this.throttle('refresh', [loginKey(login.loginId)]);
    try {
      return await this.#withSessionToken(login);
    } catch (error) {
      if (error instanceof SignInError) return null;
      throw error;
    }
  }

  async revoke(token: string): Promise<void> {
    const loginId =
      tokenKind(token) === 'session'
        ? (await findSessionTokenByHash(this.#parts.db, tokenSha256(token)))?.login_id
        : (await this.findLogin(token))?.loginId;
    if (loginId !== undefined) await this.endLogin(loginId);
  }

  async beginOidc(returnTo: string): Promise<{ location: string; setCookies: string[] }> {
    return await this.#requireOidc().begin(returnTo);
  }

  async finishOidc(
    query: Record<string, string>,
    cookieHeader: string | undefined,
    caller: Caller,
  ): Promise<{ login: Login; returnTo: string }> {
    const oidc = this.#requireOidc();
    await this.throttle('oidc-return', [addressKey(caller.address)]).catch((error: unknown) => {
      throw error instanceof SignInError ? new OidcRefusal(error.refusal, error.message) : error;
    });
    const { credential, returnTo } = await oidc.finish(query, cookieHeader, caller);
    return { login: await this.#requireLogin(credential), returnTo };
  }

  #requireOidc(): OidcSignIn {
    if (this.#oidc === null) throw new OidcRefusal('provider_unavailable', 'single sign-on is not configured');
    return this.#oidc;
  }

  async #withSessionToken(login: Login): Promise<Refreshed> {
    return { login, sessionToken: await this.issueSessionToken(login) };
  }

  async #requireLogin(credential: string): Promise<Login> {
    const login = await this.#readLogin(credential, { prolong: false });
    if (login === null) throw loginEnded();
    return login;
  }

  async #readLogin(credential: string, { prolong }: { prolong: boolean }): Promise<Login | null> {
    if (!CREDENTIAL_FORM.test(credential)) return null;
    const pending = { headers: this.#library.headersOf(credential), query: { disableRefresh: !prolong } };
    const found = await this.#library.auth.api.getSession(pending).catch((error: unknown) => {
      // Signed out while being extended.
      if (isAPIError(error) && error.statusCode === 401) return null;
      throw error;
    });
    if (found === null) return null;
    const { id: loginId, userId, expiresAt } = found.session;
    return { loginId, userId, credential, expiresAt };
  }

  /** Uses the caller's transaction or a new one. */
  async #within(
    trx: DatabaseTransaction | undefined,
    work: (trx: DatabaseTransaction) => Promise<void>,
  ): Promise<void> {
    await (trx === undefined ? this.#parts.db.transaction().execute(work) : work(trx));
  }
}

/** Maps the library's refusal of a poll to OAuth's error codes. */
function deviceRefusal(error: unknown): DeviceRefusal | null {
  if (!isAPIError(error)) return null;
  const { error: code, error_description: message } = (error.body ?? {}) as {
    error?: string;
    error_description?: string;
  };
  const known: readonly DeviceRefusalCode[] = [
    'authorization_pending',
    'slow_down',
    'access_denied',
    'expired_token',
    'invalid_grant',
  ];
  const found = known.find((refusal) => refusal === code);
  return found === undefined ? null : new DeviceRefusal(found, message ?? found);
}

/** Stored form of an address, without NUL, which Postgres cannot store. */
function normalEmail(email: string): string {
  return email.trim().toLowerCase().replaceAll('\0', '');
}

function wrongCredentials(): SignInError {
  return new SignInError('wrong_credentials', 'the email address or the password is wrong');
}

function loginEnded(): SignInError {
  return new SignInError('wrong_credentials', 'this sign-in session has ended; sign in again');
}
