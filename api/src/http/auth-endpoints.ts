// Endpoints below /auth/ for programs: OAuth's device grant, refresh and revocation (RFC 6749,
// 7009, 8628) by refresh token or console cookie, and the redirects to and from the OIDC provider.
// Request and response forms only; sign-in itself is in src/sign-in.
import { ERRORS } from '@berth/contract/route/errors.ts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  DeviceRefusal,
  OidcRefusal,
  type ClientSignIn,
  type Refreshed,
} from '../services/people/client-sign-in-port.ts';
import type { ServiceContext } from '../services/context/context.ts';
import type { Caller } from '../services/people/sign-in-port.ts';
import { localPath } from '../sign-in/local-path.ts';
import { clearedLoginCookie, cookie, loginCookie, readLoginCookie } from '../sign-in/login-cookie.ts';
import { OIDC_CALLBACK_PATH, SIGNED_IN_PATH, signInRefusedPath, stateCookieName } from '../sign-in/oidc-paths.ts';
import { failureOf } from './answers/errors.ts';
import type { EntryPoint } from './entry-point.ts';
import { OAuthError, oauthErrorOf, readParameters } from './oauth.ts';
import type { FormParser } from './requests/body.ts';

const BODY_BYTES = 16 * 1024;
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const SEE_OTHER = 303;

interface AuthEndpointsOptions {
  context: Pick<ServiceContext, 'settings'>;
  signIn: ClientSignIn;
  parseForms: FormParser;
}

/** The endpoints, with a dedicated body parser and error form. */
export function authEndpoints({ context, signIn, parseForms }: AuthEndpointsOptions): EntryPoint {
  const { publicUrl } = context.settings;
  const endpoints = async (scope: FastifyInstance): Promise<void> => {
    parseForms(scope);
    scope.setErrorHandler((error, request, reply) => sendOAuthError(error, request, reply));
    const post = (path: string, answer: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>): void => {
      scope.post(path, { bodyLimit: BODY_BYTES }, answer);
    };

    post('/auth/device/code', async (request) => {
      const { client_id: clientId } = readParameters(request.body, ['client_id']);
      const made = await signIn.requestDevice(requireClient(clientId), callerOf(request));
      return {
        device_code: made.deviceCode,
        user_code: made.userCode,
        verification_uri: made.verificationUri,
        verification_uri_complete: made.verificationUriComplete,
        expires_in: made.expiresInSeconds,
        interval: made.intervalSeconds,
      };
    });

    post('/auth/token', async (request) => {
      const parameters = readParameters(request.body, ['grant_type'], ['client_id', 'device_code', 'refresh_token']);
      switch (parameters.grant_type) {
        case DEVICE_GRANT: {
          const { client_id: clientId, device_code: deviceCode } = readParameters(request.body, [
            'client_id',
            'device_code',
          ]);
          const refreshed = await signIn.redeemDevice(
            { deviceCode, clientId: requireClient(clientId) },
            callerOf(request),
          );
          return { ...sessionTokenAnswer(refreshed), refresh_token: refreshed.refreshToken };
        }
        case 'refresh_token': {
          const { refresh_token: refreshToken } = readParameters(request.body, ['refresh_token']);
          if (parameters.client_id !== undefined) requireClient(parameters.client_id);
          const refreshed = await signIn.redeemRefreshToken(refreshToken);
          if (refreshed === null)
            throw new OAuthError('invalid_grant', 'this refresh token is unknown, expired, revoked or already used');
          return { ...sessionTokenAnswer(refreshed), refresh_token: refreshed.refreshToken };
        }
        default:
          throw new OAuthError('unsupported_grant_type', `grant_type must be ${DEVICE_GRANT} or refresh_token`);
      }
    });

    post('/auth/revoke', async (request) => {
      const { token } = readParameters(request.body, ['token']);
      await signIn.revoke(token);
      return {};
    });

    post('/auth/session', async (request, reply) => {
      if (!isOwnPage(request, publicUrl))
        throw new OAuthError('access_denied', `only pages of ${publicUrl} may call this`, 403);
      const credential = readLoginCookie(publicUrl, request.headers.cookie);
      const refreshed = credential === null ? null : await signIn.refresh(credential);
      if (refreshed === null) {
        if (credential !== null) void reply.header('set-cookie', clearedLoginCookie(publicUrl));
        throw new OAuthError('login_required', 'no user is signed in in this browser', 401);
      }
      void reply.header('set-cookie', loginCookie(publicUrl, refreshed.login));
      // A page that outlives a sign-in learns whose the new one is.
      return { ...sessionTokenAnswer(refreshed), user_id: refreshed.login.userId };
    });

    post('/auth/oidc', async (request, reply) => {
      const { return_to: given } = readParameters(request.body, [], ['return_to']);
      const returnTo = localPath(given) ?? SIGNED_IN_PATH;
      try {
        const { location, setCookies } = await signIn.beginOidc(returnTo);
        return await reply.header('set-cookie', setCookies).redirect(location, SEE_OTHER);
      } catch (error) {
        return await toSignInPage(error, returnTo, reply);
      }
    });

    scope.get(OIDC_CALLBACK_PATH, async (request, reply) => {
      // A state is valid for a single callback, even a failed one.
      const spent = cookie(publicUrl, stateCookieName(publicUrl), '', 0);
      const query = Object.entries(request.query as Record<string, unknown>).filter(
        (entry): entry is [string, string] => typeof entry[1] === 'string',
      );
      try {
        const { login, returnTo } = await signIn.finishOidc(
          Object.fromEntries(query),
          request.headers.cookie,
          callerOf(request),
        );
        return await reply.header('set-cookie', [spent, loginCookie(publicUrl, login)]).redirect(returnTo, SEE_OTHER);
      } catch (error) {
        return await toSignInPage(error, null, reply.header('set-cookie', [spent]));
      }
    });
    await Promise.resolve();
  };
  return { register: (app) => void app.register(endpoints) };

  function requireClient(clientId: string): string {
    if (!signIn.isClient(clientId)) throw new OAuthError('invalid_client', 'this client_id is unknown', 401);
    return clientId;
  }
}

/** Redirects to the sign-in page, which shows the reason; faults of the service are thrown. */
function toSignInPage(error: unknown, returnTo: string | null, reply: FastifyReply): FastifyReply {
  if (!(error instanceof OidcRefusal)) throw error;
  return reply.redirect(signInRefusedPath(error.refusal, error.returnTo ?? returnTo), SEE_OTHER);
}

function sessionTokenAnswer({ sessionToken }: Refreshed): {
  access_token: string;
  token_type: string;
  expires_in: number;
} {
  return { access_token: sessionToken.token, token_type: 'Bearer', expires_in: sessionToken.expiresInSeconds };
}

/**
 * True if a script of the service's own origin sent the request: browsers set the header, and pages
 * cannot.
 */
function isOwnPage({ headers }: FastifyRequest, publicUrl: string): boolean {
  return headers['sec-fetch-site'] === 'same-origin' || headers.origin === publicUrl;
}

/** The address of the connection, or the one reported by a trusted proxy. */
function callerOf(request: FastifyRequest): Caller {
  return { address: request.ip, userAgent: request.headers['user-agent'] ?? null };
}

function sendOAuthError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const known = error instanceof DeviceRefusal ? new OAuthError(error.code, error.message) : oauthErrorOf(error);
  if (known !== null) {
    if (known.retryAfterSeconds !== undefined) void reply.header('retry-after', String(known.retryAfterSeconds));
    return reply.code(known.status).send({ error: known.code, error_description: known.message });
  }
  const coded = failureOf(error, request);
  const { status } = ERRORS[coded.code];
  if (coded.retryAfterSeconds !== undefined) void reply.header('retry-after', String(coded.retryAfterSeconds));
  const code = status === 503 ? 'temporarily_unavailable' : status >= 500 ? 'server_error' : 'invalid_request';
  return reply.code(status).send({ error: code, error_description: coded.message });
}
