// Sign-in at the operator's OIDC provider: redirects a browser there and back. Discovery runs at
// the first use and is retried until it succeeds: a provider that is down affects only people who
// choose it.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { DerivedKeys } from '../services/context/secret-key.ts';
import type { OidcConfig } from '../config/config.ts';
import type { Settings } from '../services/context/settings.ts';
import { OidcRefusal } from '../services/people/client-sign-in-port.ts';
import type { Caller, SignIn } from '../services/people/sign-in-port.ts';
import { callerHeaders, openLibrary, type Library, type LibraryParts } from './library.ts';
import { localPath } from './local-path.ts';
import { readCookie } from './login-cookie.ts';
import { discover, discoveryUrl, readPerson } from './oidc-discovery.ts';
import { OIDC_CALLBACK_PATH, SIGNED_IN_PATH, stateCookieName } from './oidc-paths.ts';
import { prefetchFacts } from './provider-accounts.ts';

/** Never requested: tells the library's refusals from its successes. */
const REFUSED_PATH = '/auth/oidc/refused';
const PROVIDER = 'oidc';

interface OidcParts extends LibraryParts {
  settings: Pick<Settings, 'publicUrl' | 'signUp'>;
  throttle: SignIn['throttle'];
}

/** Timeouts after which the provider counts as unavailable. */
interface OidcDeadlines {
  /** Discovery. Its request continues beyond this, for the next person. */
  openMs: number;
  /** Identification of the returning person. */
  endMs: number;
}

const DEADLINES: OidcDeadlines = { openMs: 10_000, endMs: 20_000 };

interface OidcBeginning {
  /** URL of the provider's page. */
  location: string;
  /** `Set-Cookie` values that the callback needs. */
  setCookies: string[];
}

interface OidcEnd {
  credential: string;
  returnTo: string;
}

export class OidcSignIn {
  readonly name: string;
  readonly #parts: OidcParts;
  readonly #config: OidcConfig;
  readonly #deadlines: OidcDeadlines;
  #library: Library | null = null;
  /** Keys of `#library`: a new one discovers the provider again. */
  #keys: DerivedKeys | null = null;
  #opening: Promise<Library> | null = null;
  /** The library does not pass a callback's caller to `getUserInfo`. */
  readonly #caller = new AsyncLocalStorage<Caller>();

  constructor(parts: OidcParts, config: OidcConfig, deadlines: OidcDeadlines = DEADLINES) {
    this.name = config.name;
    this.#parts = parts;
    this.#config = config;
    this.#deadlines = deadlines;
  }

  /** Throws `provider_unavailable`. */
  async begin(returnTo: string): Promise<OidcBeginning> {
    const { auth } = await this.#open();
    const { publicUrl } = this.#parts.settings;
    const refused = new URL(REFUSED_PATH, publicUrl);
    refused.searchParams.set('return_to', returnTo);
    const { headers, response } = await auth.api.signInSocial({
      body: {
        provider: PROVIDER,
        callbackURL: publicUrl + returnTo,
        errorCallbackURL: refused.href,
        disableRedirect: true,
      },
      returnHeaders: true,
    });
    if (response.url === undefined) throw new Error('the sign-in library returned no URL of the provider');
    return {
      location: response.url,
      setCookies: headers.getSetCookie().filter((line) => line.startsWith(this.#stateCookie())),
    };
  }

  /** @param query of the provider's redirect. Throws {@link OidcRefusal}. */
  async finish(query: Record<string, string>, cookieHeader: string | undefined, caller: Caller): Promise<OidcEnd> {
    const library = await this.#open();
    const headers = callerHeaders(caller);
    const state = readCookie(stateCookieName(this.#parts.settings.publicUrl), cookieHeader);
    if (state !== null) headers.set('cookie', this.#stateCookie() + encodeURIComponent(state));
    const answer = await this.#withDeadline(
      this.#deadlines.endMs,
      this.#caller.run(caller, () =>
        library.auth.api.callbackOAuth({ method: 'GET', params: { id: PROVIDER }, query, headers, asResponse: true }),
      ),
    );
    const location = new URL(answer.headers.get('location') ?? REFUSED_PATH, this.#parts.settings.publicUrl);
    const credential = library.credentialIn(answer.headers);
    if (credential !== null)
      return { credential, returnTo: localPath(location.pathname + location.search + location.hash) ?? SIGNED_IN_PATH };
    const returnTo = localPath(location.searchParams.get('return_to'));
    throw refusalOf(location.searchParams.get('error') ?? '', returnTo);
  }

  #stateCookie(): string {
    return `${stateCookieName(this.#parts.settings.publicUrl)}=`;
  }

  /** The library with the provider. Concurrent callers share one discovery. */
  async #open(): Promise<Library> {
    if (this.#library !== null && this.#keys === this.#parts.secretKey.keysFor('sign-in')) return this.#library;
    this.#opening ??= this.#openNow().finally(() => {
      this.#opening = null;
    });
    return await this.#withDeadline(this.#deadlines.openMs, this.#opening);
  }

  /**
   * Runs a call that involves the provider. Throws `provider_unavailable` if it fails or times out.
   */
  async #withDeadline<T>(deadlineMs: number, pending: Promise<T>): Promise<T> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(new Error(`no valid response within ${deadlineMs} ms`)), deadlineMs);
    try {
      return await Promise.race([pending, late.promise]);
    } catch (error) {
      this.#parts.log.warn(
        { err: error, issuer: this.#config.issuer },
        'OIDC provider unavailable; the next sign-in retries',
      );
      throw new OidcRefusal('provider_unavailable', `${this.name} does not respond; try again later`, {
        cause: error,
      });
    } finally {
      clearTimeout(timer);
    }
  }

  async #openNow(): Promise<Library> {
    const { issuer, clientId, clientSecret, name } = this.#config;
    const document = await discover(issuer);
    const keys = this.#parts.secretKey.keysFor('sign-in');
    const methods = document.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const library = openLibrary(this.#parts, {
      providerId: PROVIDER,
      name,
      discoveryUrl: discoveryUrl(issuer),
      requireIdTokenVerification: true,
      clientId,
      clientSecret,
      tokenEndpointAuth: {
        method: methods.includes('client_secret_basic') ? 'client_secret_basic' : 'client_secret_post',
      },
      scopes: ['openid', 'email', 'profile'],
      pkce: true,
      redirectURI: this.#parts.settings.publicUrl + OIDC_CALLBACK_PATH,
      accountSubject: ({ profile }) => accountIdOf(document, String(profile.sub)),
      getUserInfo: async (tokens) => {
        try {
          const person = await readPerson(this.#config, document, tokens);
          const caller = this.#caller.getStore();
          if (caller === undefined) throw new Error('a person was identified outside a callback');
          const accountId = accountIdOf(document, person.sub);
          return {
            ...person,
            ...(await prefetchFacts(this.#parts, { ...person, providerId: PROVIDER, accountId }, caller)),
          };
        } catch (error) {
          this.#parts.log.warn({ err: error, issuer }, 'could not identify the user of an OIDC sign-in');
          return null;
        }
      },
    });
    const { socialProviders } = await library.auth.$context;
    if (!socialProviders.some(({ id }) => id === PROVIDER))
      throw new Error('the discovery document changed while it was read');
    this.#library = library;
    this.#keys = keys;
    return library;
  }
}

/** Includes the issuer: another provider may use the same subject for another person. */
function accountIdOf({ issuer }: { issuer: string }, subject: string): string {
  return `${issuer} ${subject}`;
}

function refusalOf(code: string, returnTo: string | null): OidcRefusal {
  switch (code) {
    case 'email_not_verified':
    case 'account_not_linked':
      return new OidcRefusal(
        'email_not_verified',
        'your email address is verified neither at the provider nor here; verify it first',
        { returnTo },
      );
    case 'sign_up_closed':
      return new OidcRefusal('sign_up_closed', 'only invited users can create an account', { returnTo });
    case 'sign_up_limit':
      return new OidcRefusal('sign_up_limit', 'too many new accounts from this network address or mail domain', {
        returnTo,
      });
    case 'internal_server_error':
      return new OidcRefusal('provider_unavailable', 'sign-in failed with an internal error; try again', {
        returnTo,
      });
    default:
      return new OidcRefusal('provider_refused', 'the sign-in at the provider failed; try again', { returnTo });
  }
}
