// Implements sign-in over the sign-in library and the rows beside it. Owns accounts, password rules
// and throttling; logins.ts owns sign-in sessions and their tokens, devices.ts device codes.
// Endpoints and pages own the wire format.
import { NAME_CHARACTERS } from '@berth/contract/route/limits.ts';
import type { OidcConfig } from '../config/config.ts';
import {
  accountKey,
  addressKey,
  loginKey,
  userKey,
  type ThrottleKey,
  type ThrottleKind,
} from '../rules/access/throttle.ts';
import { tokenKind, tokenSha256 } from '../services/access/bearer-token.ts';
import {
  OidcRefusal,
  type ClientRefreshed,
  type ClientSignIn,
  type DeviceRequest,
  type Refreshed,
} from '../services/people/client-sign-in-port.ts';
import { SecondFactorRequired, type CodeUse } from '../services/people/factors-port.ts';
import type { Settings } from '../services/context/settings.ts';
import { SignInError, type Caller, type Login, type PendingDevice } from '../services/people/sign-in-port.ts';
import { newId } from '../store/database/ids.ts';
import type { DatabaseTransaction } from '../store/database/schema.ts';
import { markSso } from '../store/access/sso.ts';
import { findSessionTokenByHash } from '../store/access/session-tokens.ts';
import {
  deleteLoginsOfUser,
  denyApprovedDevices,
  findPassword,
  findPasswordOfUser,
  insertNewUser,
  isPassword,
  putPassword,
} from '../store/people/sign-in.ts';
import { Devices } from './devices.ts';
import { Factors } from './factors.ts';
import { DEVICE_CLIENTS, openLibrary, type LibraryParts } from './library.ts';
import { Logins } from './logins.ts';
import { OidcSignIn } from './oidc.ts';
import { Passkeys } from './passkeys.ts';
import { fitPasswordHash, isPasswordOf, spendTimeOnPassword } from './password.ts';
import { countAttempts } from './tries.ts';

interface SignInParts extends LibraryParts {
  settings: Pick<Settings, 'publicUrl' | 'signUp' | 'signUpsPerHour' | 'sessionTokenMinutes'>;
  oidc: OidcConfig | null;
}

/** Opens sign-in; contacts neither the database nor the OIDC provider. */
export function openSignIn(parts: SignInParts): ClientSignIn {
  return new LibrarySignIn(parts);
}

class LibrarySignIn implements ClientSignIn {
  readonly #parts: SignInParts;
  readonly #oidc: OidcSignIn | null;
  readonly #logins: Logins;
  readonly #devices: Devices;
  readonly factors: Factors;
  readonly passkeys: Passkeys;

  constructor(parts: SignInParts) {
    this.#parts = parts;
    const library = openLibrary(parts, null);
    this.#oidc =
      parts.oidc === null
        ? null
        : new OidcSignIn({ ...parts, throttle: (kind, keys) => this.throttle(kind, keys) }, parts.oidc);
    this.#logins = new Logins(parts, library);
    this.passkeys = new Passkeys({ ...parts, throttle: (kind, keys) => this.throttle(kind, keys) });
    this.factors = new Factors({ ...parts, throttle: (kind, keys) => this.throttle(kind, keys) });
    this.#devices = new Devices({
      db: parts.db,
      library,
      logins: this.#logins,
      keys: () => parts.secretKey.keysFor('device-code'),
      throttle: (kind, keys) => this.throttle(kind, keys),
    });
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
    if ((await this.factors.totpState(userId)) !== null)
      throw new SecondFactorRequired(this.factors.sealSignIn(userId, passwordHash));
    return await this.#createLogin(userId, passwordHash, caller);
  }

  async withSecondFactor(pending: string, code: string, caller: Caller): Promise<{ login: Login; use: CodeUse }> {
    const { userId, isPassword: wasPassword } = this.factors.openSignIn(pending);
    const passwordHash = await findPasswordOfUser(this.#parts.db, userId);
    if (passwordHash === undefined || !wasPassword(passwordHash)) throw wrongCredentials();
    await this.throttle('second-factor', [addressKey(caller.address), userKey(userId)]);
    const use = await this.factors.useCode(userId, code);
    return { login: await this.#createLogin(userId, passwordHash, caller), use };
  }

  async #createLogin(userId: string, passwordHash: string, caller: Caller): Promise<Login> {
    const login = await this.#logins.create(userId, caller);
    // A concurrent password change ends the sign-in sessions that it sees. The new session may have
    // been created just after that, so check again.
    if (await isPassword(this.#parts.db, userId, passwordHash)) return login;
    await this.#logins.end(login.loginId);
    throw wrongCredentials();
  }

  async confirmWithPassword(
    { loginId, email }: { loginId: string; email: string },
    password: string,
    caller: Caller,
  ): Promise<void> {
    await this.throttle('confirm', [addressKey(caller.address), loginKey(loginId)]);
    const known = await findPassword(this.#parts.db, email);
    if (known === undefined || !(await isPasswordOf(known.passwordHash, password)))
      throw new SignInError('wrong_credentials', 'the password is wrong');
    await this.#logins.confirm(loginId);
  }

  async confirmWithCode(
    { loginId, userId }: { loginId: string; userId: string },
    code: string,
    caller: Caller,
  ): Promise<CodeUse> {
    await this.throttle('confirm', [addressKey(caller.address), loginKey(loginId)]);
    const use = await this.factors.useCode(userId, code);
    await this.#logins.confirm(loginId);
    return use;
  }

  async confirmLogin(loginId: string): Promise<void> {
    await this.#logins.confirm(loginId);
  }

  async secondsSinceSignIn(loginId: string): Promise<number> {
    return await this.#logins.secondsSinceSignIn(loginId);
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
    return await this.#logins.create(userId, caller);
  }

  async findLogin(credential: string): Promise<{ loginId: string; userId: string } | null> {
    return await this.#logins.find(credential);
  }

  async endLogin(loginId: string): Promise<void> {
    await this.#logins.end(loginId);
  }

  async issueSessionToken(login: { loginId: string; userId: string }): Promise<Refreshed['sessionToken']> {
    return await this.#logins.issueSessionToken(login);
  }

  async throttle(kind: ThrottleKind, keys: readonly ThrottleKey[]): Promise<void> {
    await countAttempts(
      this.#parts.db,
      this.#parts.secretKey.derive('throttle'),
      kind,
      keys,
      this.#parts.settings.signUpsPerHour,
    );
  }

  async findDevice(userCode: string): Promise<PendingDevice | null> {
    return await this.#devices.find(userCode);
  }

  async decideDevice(
    userCode: string,
    userId: string,
    decision: 'approve' | 'deny',
    loginId: string | null = null,
  ): Promise<void> {
    await this.#devices.decide(userCode, { userId, loginId }, decision);
  }

  async requestDevice(clientId: string, caller: Caller): Promise<DeviceRequest> {
    return await this.#devices.request(clientId, caller);
  }

  async redeemDevice(request: { deviceCode: string; clientId: string }, caller: Caller): Promise<ClientRefreshed> {
    return await this.#devices.redeem(request, caller);
  }

  isClient(clientId: string): boolean {
    return DEVICE_CLIENTS.has(clientId);
  }

  async refresh(credential: string): Promise<Refreshed | null> {
    const login = await this.#logins.readCookie(credential, { prolong: true });
    return login === null ? null : await this.#refreshed(login, () => this.#logins.withSessionToken(login));
  }

  async redeemRefreshToken(refreshToken: string): Promise<ClientRefreshed | null> {
    const found = await this.#logins.readRefreshToken(refreshToken);
    if (found === null) return null;
    return await this.#refreshed(found.login, () => this.#logins.rotate(found.login, found.generation));
  }

  async #refreshed<R>({ loginId }: Login, issue: () => Promise<R>): Promise<R | null> {
    await this.throttle('refresh', [loginKey(loginId)]);
    try {
      return await issue();
    } catch (error) {
      if (error instanceof SignInError) return null;
      throw error;
    }
  }

  async revoke(token: string): Promise<void> {
    const loginId =
      tokenKind(token) === 'session'
        ? (await findSessionTokenByHash(this.#parts.db, tokenSha256(token)))?.login_id
        : (await this.#logins.readRefreshToken(token))?.login.loginId;
    if (loginId !== undefined) await this.#logins.end(loginId);
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
    const login = await this.#logins.begun(credential);
    await markSso(this.#parts.db, login.loginId);
    return { login, returnTo };
  }

  #requireOidc(): OidcSignIn {
    if (this.#oidc === null) throw new OidcRefusal('provider_unavailable', 'single sign-on is not configured');
    return this.#oidc;
  }

  /** Uses the caller's transaction or a new one. */
  async #within(
    trx: DatabaseTransaction | undefined,
    work: (trx: DatabaseTransaction) => Promise<void>,
  ): Promise<void> {
    await (trx === undefined ? this.#parts.db.transaction().execute(work) : work(trx));
  }
}

/** Stored form of an address, without NUL, which Postgres cannot store. */
function normalEmail(email: string): string {
  return email.trim().toLowerCase().replaceAll('\0', '');
}

function wrongCredentials(): SignInError {
  return new SignInError('wrong_credentials', 'the email address or the password is wrong');
}
