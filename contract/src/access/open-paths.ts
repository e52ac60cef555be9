// The closed list of paths without a bearer token: the health check, sign-in, web pages and the API
// reference. A test compares the server with it; docs/spec-gaps/open-paths.md gives the reasons.
// Paths below /auth/ use the request and error formats of OAuth (RFC 6749, 7009, 8628).
import type { Method } from '../route/route.ts';

interface OpenPath {
  method: Exclude<Method, 'PATCH' | 'DELETE'> | 'OPTIONS';
  /** `{name}` stands for one segment, a final `*` for any rest. */
  path: string;
  why: string;
}

export const OPEN_PATHS: readonly OpenPath[] = [
  { method: 'GET', path: '/health', why: 'the health check' },
  {
    method: 'POST',
    path: '/auth/device/code',
    why: 'device authorization: issues a code that a user approves (RFC 8628)',
  },
  {
    method: 'POST',
    path: '/auth/token',
    why: 'exchanges a device code or refresh token for an access token (RFC 6749)',
  },
  {
    method: 'POST',
    path: '/auth/revoke',
    why: 'sign-out: revokes a refresh or access token (RFC 7009)',
  },
  { method: 'POST', path: '/auth/session', why: "exchanges the console's cookie for an access token" },
  { method: 'POST', path: '/auth/oidc', why: 'starts a sign-in at the OIDC provider' },
  { method: 'GET', path: '/auth/oidc/callback', why: 'redirect target of the OIDC provider' },
  { method: 'GET', path: '/sign-in', why: 'page' },
  { method: 'POST', path: '/sign-in', why: 'form of the page' },
  { method: 'GET', path: '/sign-out', why: 'page' },
  { method: 'POST', path: '/sign-out', why: 'form of the page' },
  { method: 'GET', path: '/sign-ins', why: 'page of the sign-ins of the signed-in user' },
  { method: 'POST', path: '/sign-ins', why: 'form of the page: ends sign-ins' },
  { method: 'GET', path: '/second-factor', why: 'page that asks for a code after the password' },
  { method: 'POST', path: '/second-factor', why: 'form of the page' },
  { method: 'GET', path: '/passkey', why: 'page: redirects to sign-in' },
  { method: 'POST', path: '/passkey', why: 'form of the page: signs in or confirms with a passkey' },
  { method: 'GET', path: '/passkeys.js', why: 'script of pages with passkey forms' },
  { method: 'GET', path: '/account', why: "page of the signed-in user's passkeys and authenticator app" },
  { method: 'POST', path: '/account', why: 'form of the page' },
  { method: 'GET', path: '/confirm', why: 'page on which a signed-in user proves their identity again' },
  { method: 'POST', path: '/confirm', why: 'form of the page' },
  { method: 'GET', path: '/forgot-password', why: 'page' },
  { method: 'POST', path: '/forgot-password', why: 'form of the page' },
  { method: 'GET', path: '/reset-password', why: 'page; its query holds the mailed token' },
  { method: 'POST', path: '/reset-password', why: 'form of the page' },
  { method: 'GET', path: '/verify-email', why: 'page; its query holds the mailed token' },
  { method: 'POST', path: '/verify-email', why: 'form of the page: verifies, or resends the mail' },
  { method: 'GET', path: '/welcome', why: 'page opened by the one-time link of the first start' },
  { method: 'POST', path: '/welcome', why: 'form of the page' },
  { method: 'GET', path: '/invitation', why: 'page opened by the link of an invitation mail' },
  { method: 'POST', path: '/invitation', why: 'form of the page: accepts with a new account or the signed-in one' },
  { method: 'GET', path: '/device', why: 'page on which a user approves a device' },
  { method: 'POST', path: '/device', why: 'form of the page' },
  { method: 'GET', path: '/preview', why: 'page opened by a team link: redirects members of the org to the preview' },
  { method: 'GET', path: '/file-links/{token}', why: 'file link: sends a file; its path is the credential' },
  { method: 'PUT', path: '/file-links/{token}', why: 'file link: writes a file; its path is the credential' },
  { method: 'OPTIONS', path: '/file-links/{token}', why: 'file link: lets pages of other origins use it' },
  { method: 'POST', path: '/billing/stripe', why: 'webhook of the payment provider; events are signed' },
  { method: 'GET', path: '/billing/return', why: 'page opened on return from the payment provider' },
  { method: 'GET', path: '/pages.css', why: 'style sheet of the pages' },
  { method: 'GET', path: '/', why: 'redirects to the web console, or to sign-in where none is served' },
  { method: 'GET', path: '/console', why: 'web console: its page, which holds no data' },
  { method: 'GET', path: '/console/*', why: 'web console: the same page' },
  { method: 'GET', path: '/console/assets/{file}', why: 'web console: scripts, styles and pictures' },
  { method: 'GET', path: '/v1/openapi.json', why: 'the published OpenAPI document' },
  { method: 'GET', path: '/docs', why: 'API reference: renders the document' },
  { method: 'GET', path: '/docs/redoc.js', why: 'API reference: renderer' },
  { method: 'GET', path: '/docs/start.js', why: 'API reference: start script' },
  { method: 'GET', path: '/docs/docs.css', why: 'API reference: style sheet' },
];
