// The sign-in library (better-auth), set up for this service: its tables in our database, its keys
// from our secret key, no router of its own. What it is asked is asked by the functions of its
// `api`; nothing of a request reaches it but what `callerHeaders` and its own cookies hold.
import { betterAuth, type BetterAuthOptions, type BetterAuthPlugin } from 'better-auth';
import { createAuthEndpoint } from 'better-auth/api';
import { makeSignature } from 'better-auth/crypto';
import { deviceAuthorization } from 'better-auth/plugins/device-authorization';
import { genericOAuth, type GenericOAuthConfig } from 'better-auth/plugins/generic-oauth';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { SecretKey } from '../services/context/secret-key.ts';
import type { Settings } from '../services/context/settings.ts';
import type { Caller } from '../services/people/sign-in-port.ts';
import { newId } from '../store/database/ids.ts';
import type { Database } from '../store/database/schema.ts';
import { hasPendingInvitation } from '../store/people/sign-in.ts';
import { stateCookieName } from './oidc-paths.ts';

/** The clients that may ask for a device code: ours. */
export const DEVICE_CLIENTS: ReadonlySet<string> = new Set(['berth-cli', 'berth-console']);
export const DEVICE_CODE_SECONDS = 900;
export const DEVICE_POLL_SECONDS = 5;

const DAY_SECONDS = 86_400;
/**
 * Of a login, from its last refresh. A refresh that comes earlier than a day after the one before
 * changes nothing.
 */
const LOGIN_SECONDS = 30 * DAY_SECONDS;
const LONGEST_USER_AGENT = 512;
const ADDRESS_HEADER = 'x-berth-caller-address';
const SESSION_COOKIE = 'login';

export interface LibraryParts {
  db: Database;
  settings: Pick<Settings, 'publicUrl' | 'signUp'>;
  secretKey: SecretKey;
  log: Logger;
}

/**
 * Why an account is not made or linked for somebody whom a provider sends; codes of our own in the
 * library's refusals.
 */
export type ProviderRefusal = 'email_not_verified' | 'sign_up_closed';

export type Library = ReturnType<typeof openLibrary>;

/**
 * Nothing is asked of the database or of the provider before the first call, except the provider's
 * discovery document.
 */
export function openLibrary(parts: LibraryParts, provider: GenericOAuthConfig<'oidc'> | null) {
  const { db, settings, secretKey, log } = parts;
  const secret = secretKey.derive('sign-in').toString('base64');
  const auth = betterAuth({
    appName: 'Berth',
    baseURL: settings.publicUrl,
    basePath: '/auth',
    // Given as a list, it wins over every variable of the environment that the library reads.
    secrets: [{ version: 1, value: secret }],
    telemetry: { enabled: false },
    logger: libraryLogger(log),
    database: { db, type: 'postgres', transaction: true },
    rateLimit: { enabled: false },
    emailAndPassword: { enabled: false },
    session: { expiresIn: LOGIN_SECONDS, updateAge: DAY_SECONDS, cookieCache: { enabled: false } },
    user: { validateUserInfo: ({ user, source }) => judgeProviderUser(settings, user, source) },
    account: {
      // In the browser, sealed, instead of a row for whoever presses the button.
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
  return {
    auth,
    /**
     * The signed form of a login's token, which its holder keeps. Made of what may stand in a form,
     * a header and a cookie as it is.
     */
    credentialOf: async (token: string): Promise<string> =>
      `${token}.${toBase64Url(await makeSignature(token, secret))}`,
    /**
     * Of a request with the credential, for the library; its signature is looked at before any
     * query.
     */
    headersOf: (credential: string): Headers => {
      const dot = credential.lastIndexOf('.');
      const signed = `${credential.slice(0, dot)}.${toBase64(credential.slice(dot + 1))}`;
      return new Headers({ cookie: `${SESSION_COOKIE}=${encodeURIComponent(signed)}` });
    },
    /**
     * The credential in what the library wanted to set as its cookie; null when it signed nobody
     * in.
     */
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

/** What the library may know of who calls: it notes both with a login. */
export function callerHeaders(caller: Caller): Headers {
  return new Headers({
    [ADDRESS_HEADER]: caller.address,
    'user-agent': (caller.userAgent ?? '').slice(0, LONGEST_USER_AGENT),
  });
}

/** Logins for who has proven otherwise who they are. */
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

/**
 * What is known here of a person whom the provider sends, beside what it says: part of the profile
 * that the library hands on until it has decided.
 */
export interface AskedBeforehand {
  /** The person's address in lower case, if an account may be made for it by an invitation. */
  invitedAddress: string | null;
}

/**
 * Asks what {@link judgeProviderUser} needs to know. The library calls that one in a transaction,
 * which holds a connection: a query there would wait for a second one of the same pool, and with as
 * many callers at once as the pool has connections nobody would get one.
 */
export async function askBeforehand(
  { db, settings }: Pick<LibraryParts, 'db' | 'settings'>,
  { email, emailVerified }: { email: string | undefined; emailVerified: boolean },
): Promise<AskedBeforehand> {
  if (settings.signUp === 'open' || !emailVerified || email === undefined) return { invitedAddress: null };
  const address = email.toLowerCase();
  return { invitedAddress: (await hasPendingInvitation(db, address)) ? address : null };
}

/**
 * Whether somebody whom the provider sends may have a new account. Linking and signing in are
 * decided by the library, by the rules it is given. Asks the database nothing: what it has to know
 * stands in the profile.
 */
function judgeProviderUser(
  settings: LibraryParts['settings'],
  user: { email?: string | undefined; emailVerified?: boolean | undefined },
  {
    action,
    oauth,
  }: {
    action: 'create-user' | 'link-account' | 'sign-in';
    oauth?: { profile?: Record<string, unknown> | undefined } | undefined;
  },
): { error: ProviderRefusal } | undefined {
  if (action !== 'create-user') return undefined;
  if (user.emailVerified !== true || user.email === undefined) return { error: 'email_not_verified' };
  const { invitedAddress }: Partial<Record<keyof AskedBeforehand, unknown>> = oauth?.profile ?? {};
  if (settings.signUp === 'open' || invitedAddress === user.email.toLowerCase()) return undefined;
  return { error: 'sign_up_closed' };
}

/** The provider is asked who somebody is, once; what it hands out besides is not kept. */
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
 * Messages only: what the library logs beside them can hold tokens and addresses. Its errors are
 * mostly callers' mistakes; a fault throws besides.
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

function toBase64Url(base64: string): string {
  return base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

function toBase64(base64Url: string): string {
  const base64 = base64Url.replaceAll('-', '+').replaceAll('_', '/');
  return base64.padEnd(Math.ceil(base64.length / 4) * 4, '=');
}
