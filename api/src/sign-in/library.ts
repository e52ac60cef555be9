// The sign-in library (better-auth), configured with the service's database and derived keys, and
// without its router. Called through the functions of its `api`. The library sees only a request's
// `callerHeaders` and its own cookies.
import { timingSafeEqual } from 'node:crypto';
import { betterAuth, type BetterAuthOptions, type BetterAuthPlugin } from 'better-auth';
import { createAuthEndpoint } from 'better-auth/api';
import { makeSignature } from 'better-auth/crypto';
import { deviceAuthorization } from 'better-auth/plugins/device-authorization';
import { genericOAuth, type GenericOAuthConfig } from 'better-auth/plugins/generic-oauth';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { DerivedKey, DerivedKeys, SecretKey } from '../services/context/secret-key.ts';
import type { Settings } from '../services/context/settings.ts';
import type { Caller } from '../services/people/sign-in-port.ts';
import { newId } from '../store/database/ids.ts';
import type { Database } from '../store/database/schema.ts';
import { stateCookieName } from './oidc-paths.ts';
import { checkProviderUser } from './provider-accounts.ts';

/** Client ids that may request a device code. */
export const DEVICE_CLIENTS: ReadonlySet<string> = new Set(['berth-cli', 'berth-console']);
const DEVICE_CODE_SECONDS = 900;
const DEVICE_POLL_SECONDS = 5;

const DAY_SECONDS = 86_400;
/** Lifetime of a sign-in session from its last refresh, which counts at most daily. */
const SIGN_IN_SECONDS = 30 * DAY_SECONDS;
const LONGEST_USER_AGENT = 512;
const ADDRESS_HEADER = 'x-berth-caller-address';
const SESSION_COOKIE = 'login';

export interface LibraryParts {
  db: Database;
  settings: Pick<Settings, 'publicUrl'>;
  secretKey: SecretKey;
  log: Logger;
}

export type Library = ReturnType<typeof openLibrary>;

/**
 * Opens the library. Before the first call it requests nothing from the database, and from the
 * provider only its discovery document.
 */
export function openLibrary(parts: LibraryParts, provider: GenericOAuthConfig<'oidc'> | null) {
  const keysNow = (): DerivedKeys => parts.secretKey.keysFor('sign-in');
  // The library takes its secrets once.
  let opened = { keys: keysNow(), auth: openAuth(parts, keysNow(), provider) };
  const current = (): typeof opened => {
    const keys = keysNow();
    if (keys !== opened.keys) opened = { keys, auth: openAuth(parts, keys, provider) };
    return opened;
  };
  return {
    get auth() {
      return current().auth;
    },
    /**
     * The signed form of a sign-in session's token, kept by its holder. Its characters need no
     * escaping in forms, headers and cookies.
     */
    credentialOf: async (token: string): Promise<string> =>
      `${token}.${toBase64Url(await makeSignature(token, secretOf(keysNow()[0])))}`,
    /** The session of a credential, whose signature is verified before any query. */
    findSession: async (credential: string, { prolong }: { prolong: boolean }) => {
      const { keys, auth } = current();
      const token = credential.slice(0, credential.lastIndexOf('.'));
      if (!(await isSigned(keys, token, credential))) return null;
      const signed = `${token}.${await makeSignature(token, secretOf(keys[0]))}`;
      const headers = new Headers({ cookie: `${SESSION_COOKIE}=${encodeURIComponent(signed)}` });
      return await auth.api.getSession({ headers, query: { disableRefresh: !prolong } });
    },
    /** The credential in the library's `Set-Cookie` header; null if it signed nobody in. */
    credentialIn: (answer: Headers): string | null => {
      const pair = answer
        .getSetCookie()
        .map((line) => line.split(';', 1)[0] ?? '')
        .find((line) => line.startsWith(`${SESSION_COOKIE}=`));
      const signed = pair === undefined ? '' : decodeURIComponent(pair.slice(SESSION_COOKIE.length + 1));
      const dot = signed.lastIndexOf('.');
      return dot === -1 ? null : `${signed.slice(0, dot)}.${toBase64Url(signed.slice(dot + 1))}`;
    },
  };
}

function openAuth({ db, settings, log }: LibraryParts, keys: DerivedKeys, provider: GenericOAuthConfig<'oidc'> | null) {
  return betterAuth({
    appName: 'Berth',
    baseURL: settings.publicUrl,
    basePath: '/auth',
    // The list form takes precedence over environment variables that the library reads.
    secrets: keys.map((key) => ({ version: key.id.readUInt32BE(), value: secretOf(key) })),
    telemetry: { enabled: false },
    logger: libraryLogger(log),
    database: { db, type: 'postgres', transaction: true },
    rateLimit: { enabled: false },
    emailAndPassword: { enabled: false },
    session: { expiresIn: SIGN_IN_SECONDS, updateAge: DAY_SECONDS, cookieCache: { enabled: false } },
    user: { validateUserInfo: ({ user, source }) => checkProviderUser(user, source) },
    account: {
      // Sealed in the browser: anonymous clicks create no rows.
      storeStateStrategy: 'cookie',
      updateAccountOnSignIn: false,
      accountLinking: { enabled: true, trustedProviders: [], requireLocalEmailVerified: true },
    },
    databaseHooks: {
      account: { create: { before: (account) => Promise.resolve({ data: withoutProviderTokens(account) }) } },
    },
    advanced: {
      database: { generateId: ({ model }) => newId(model === 'user' ? 'user' : 'signIn'), validateSchema: false },
      ipAddress: { ipAddressHeaders: [ADDRESS_HEADER] },
      useSecureCookies: false,
      cookies: {
        session_token: { name: SESSION_COOKIE },
        oauth_state: {
          name: stateCookieName(settings.publicUrl),
          attributes: { secure: settings.publicUrl.startsWith('https://') },
        },
      },
    },
    plugins: [
      deviceAuthorization({
        expiresIn: `${DEVICE_CODE_SECONDS}s`,
        interval: `${DEVICE_POLL_SECONDS}s`,
        verificationUri: `${settings.publicUrl}/device`,
        validateClient: (clientId) => DEVICE_CLIENTS.has(clientId),
      }),
      genericOAuth({ config: provider === null ? [] : [provider] }),
      loginPlugin,
    ],
  } satisfies BetterAuthOptions);
}

/** Caller facts for the library, which stores both with a sign-in session. */
export function callerHeaders(caller: Caller): Headers {
  return new Headers({
    [ADDRESS_HEADER]: caller.address,
    'user-agent': (caller.userAgent ?? '').slice(0, LONGEST_USER_AGENT),
  });
}

/** Creates sign-in sessions for people whose identity was proven otherwise. */
const loginPlugin = {
  id: 'berth',
  endpoints: {
    createLogin: createAuthEndpoint(
      '/login',
      { method: 'POST', body: z.object({ userId: z.string() }), metadata: { SERVER_ONLY: true } },
      async (ctx) => await ctx.context.internalAdapter.createSession(ctx.body.userId),
    ),
  },
} satisfies BetterAuthPlugin;

/** The provider identifies a person once; its tokens are not kept. */
function withoutProviderTokens<A extends object>(account: A) {
  return {
    ...account,
    accessToken: null,
    refreshToken: null,
    idToken: null,
    accessTokenExpiresAt: null,
    refreshTokenExpiresAt: null,
    scope: null,
  };
}

/**
 * Logs messages only: the library's other log arguments can hold tokens and addresses. Its errors
 * are mostly callers' mistakes; faults also throw.
 */
function libraryLogger(log: Logger): NonNullable<BetterAuthOptions['logger']> {
  const child = log.child({ part: 'sign-in' });
  return {
    level: 'warn',
    disableColors: true,
    log: (level, message, ...rest) => {
      const cause = rest.find((value) => value instanceof Error);
      child[level === 'error' ? 'warn' : 'debug'](
        { ...(cause === undefined ? {} : { cause: cause.message }) },
        message,
      );
    },
  };
}

/** A secret of the library is text. */
function secretOf({ key }: DerivedKey): string {
  return key.toString('base64');
}

async function isSigned(keys: DerivedKeys, token: string, credential: string): Promise<boolean> {
  const given = Buffer.from(credential);
  for (const key of keys) {
    const wanted = Buffer.from(`${token}.${toBase64Url(await makeSignature(token, secretOf(key)))}`);
    if (given.length === wanted.length && timingSafeEqual(given, wanted)) return true;
  }
  return false;
}

function toBase64Url(base64: string): string {
  return base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
