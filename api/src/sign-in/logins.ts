// Sign-in sessions of the library, and the session tokens that they refresh.
import { REFRESH_GRACE_SECONDS, SIGN_INS_PER_USER } from '@berth/contract/route/limits.ts';
import { isAPIError } from 'better-auth/api';
import { newToken, tokenSha256 } from '../services/access/bearer-token.ts';
import { endReusedSignIn } from '../services/access/sign-ins.ts';
import type { SecretKey } from '../services/context/secret-key.ts';
import type { Settings } from '../services/context/settings.ts';
import type { ClientRefreshed, Refreshed } from '../services/people/client-sign-in-port.ts';
import { SignInError, type Caller, type Login } from '../services/people/sign-in-port.ts';
import {
  confirmLogin,
  deleteLogin,
  hasSpentRefreshToken,
  insertSessionToken,
  isJustSpent,
  secondsSinceSignIn,
  spendRefreshToken,
} from '../store/access/session-tokens.ts';
import type { Database } from '../store/database/schema.ts';
import { deleteOldestSessionTokens } from '../store/people/sign-in.ts';
import { deleteSignInsBeyond } from '../store/access/sign-ins.ts';
import { callerHeaders, type Library } from './library.ts';
import { openRefreshToken, sealRefreshToken } from './refresh-token.ts';

/**
 * Session tokens kept per sign-in session, newest first: endless refreshes do not fill the table.
 */
const MOST_SESSION_TOKENS = 50;
/** The library's token and its signature; text of another form needs no query. */
const CREDENTIAL_FORM = /^[0-9A-Za-z_-]{1,128}\.[0-9A-Za-z_-]{43}$/;
const PG_FOREIGN_KEY_VIOLATION = '23503';

interface LoginsParts {
  db: Database;
  settings: Pick<Settings, 'sessionTokenMinutes'>;
  secretKey: SecretKey;
}

export class Logins {
  readonly #db: Database;
  readonly #secretKey: SecretKey;
  readonly #library: Library;
  readonly #settings: Pick<Settings, 'sessionTokenMinutes'>;

  constructor({ db, settings, secretKey }: LoginsParts, library: Library) {
    this.#db = db;
    this.#secretKey = secretKey;
    this.#library = library;
    this.#settings = settings;
  }

  async create(userId: string, caller: Caller): Promise<Login> {
    const { token } = await this.#library.auth.api.createLogin({ body: { userId }, headers: callerHeaders(caller) });
    return await this.begun(await this.#library.credentialOf(token));
  }

  async find(credential: string): Promise<{ loginId: string; userId: string } | null> {
    const login = await this.readCookie(credential, { prolong: false });
    return login === null ? null : { loginId: login.loginId, userId: login.userId };
  }

  /** The sign-in session of a browser's cookie; null for a spent refresh token of the same form. */
  async readCookie(credential: string, { prolong }: { prolong: boolean }): Promise<Login | null> {
    if (!CREDENTIAL_FORM.test(credential)) return null;
    if (await hasSpentRefreshToken(this.#db, credential.slice(0, credential.lastIndexOf('.')))) return null;
    return await this.read(credential, { prolong });
  }

  /** The sign-in session just created. Ends the user's least recently used beyond the limit. */
  async begun(credential: string): Promise<Login> {
    const login = await this.read(credential, { prolong: false });
    if (login === null) throw loginEnded();
    await deleteSignInsBeyond(this.#db, login.userId, SIGN_INS_PER_USER);
    return login;
  }

  async read(credential: string, { prolong }: { prolong: boolean }): Promise<Login | null> {
    if (!CREDENTIAL_FORM.test(credential)) return null;
    const found = await this.#library.findSession(credential, { prolong }).catch((error: unknown) => {
      // Signed out while being extended.
      if (isAPIError(error) && error.statusCode === 401) return null;
      throw error;
    });
    if (found === null) return null;
    const { id: loginId, userId, expiresAt, token } = found.session;
    // Signed anew: the given credential may be signed with a former key.
    return { loginId, userId, credential: await this.#library.credentialOf(token), expiresAt };
  }

  /** A concurrent password change ends the sign-in session, which is then not confirmed. */
  async confirm(loginId: string): Promise<void> {
    if (!(await confirmLogin(this.#db, loginId))) throw loginEnded();
  }

  async secondsSinceSignIn(loginId: string): Promise<number> {
    const seconds = await secondsSinceSignIn(this.#db, loginId);
    if (seconds === undefined) throw loginEnded();
    return seconds;
  }

  async end(loginId: string): Promise<void> {
    await deleteLogin(this.#db, loginId);
  }

  async issueSessionToken(
    { loginId, userId }: Pick<Login, 'loginId' | 'userId'>,
    db: Database = this.#db,
  ): Promise<Refreshed['sessionToken']> {
    const token = newToken('session');
    const minutes = this.#settings.sessionTokenMinutes;
    try {
      const { expiresAt } = await insertSessionToken(db, {
        loginId,
        userId,
        tokenSha256: tokenSha256(token),
        minutes,
      });
      await deleteOldestSessionTokens(db, loginId, MOST_SESSION_TOKENS);
      return { token, expiresAt, expiresInSeconds: minutes * 60 };
    } catch (error) {
      // Signed out concurrently.
      if ((error as { code?: unknown }).code === PG_FOREIGN_KEY_VIOLATION) throw loginEnded();
      throw error;
    }
  }

  async withSessionToken(login: Login): Promise<Refreshed> {
    return { login, sessionToken: await this.issueSessionToken(login) };
  }

  /** A client's new sign-in session, with its first refresh token. */
  async forClient(login: Login): Promise<ClientRefreshed> {
    return { ...(await this.withSessionToken(login)), refreshToken: this.#refreshToken(login, 0) };
  }

  /** The sign-in session of a refresh token, spent or not, and the token's generation. */
  async readRefreshToken(sent: string): Promise<{ login: Login; generation: number } | null> {
    const opened = openRefreshToken(this.#secretKey.keysFor('refresh-token'), sent);
    // From before refresh tokens had generations.
    const credential = opened === null ? sent : await this.#library.credentialOf(opened.token);
    const login = await this.read(credential, { prolong: true });
    return login === null ? null : { login, generation: opened?.generation ?? 0 };
  }

  /**
   * Spends a refresh token and issues the next one with a session token, or neither. Null if it was
   * spent before the grace period, which ends the sign-in session.
   */
  async rotate(login: Login, generation: number): Promise<ClientRefreshed | null> {
    const { loginId } = login;
    return await this.#db.transaction().execute(async (trx) => {
      const grace = { loginId, generation, seconds: REFRESH_GRACE_SECONDS };
      if (!(await spendRefreshToken(trx, loginId, generation)) && !(await isJustSpent(trx, grace))) {
        await endReusedSignIn(trx, login);
        return null;
      }
      const sessionToken = await this.issueSessionToken(login, trx);
      return { login, sessionToken, refreshToken: this.#refreshToken(login, generation + 1) };
    });
  }

  #refreshToken({ credential }: Login, generation: number): string {
    return sealRefreshToken(this.#secretKey.keysFor('refresh-token'), {
      token: credential.slice(0, credential.lastIndexOf('.')),
      generation,
    });
  }
}

function loginEnded(): SignInError {
  return new SignInError('wrong_credentials', 'this sign-in session has ended; sign in again');
}
