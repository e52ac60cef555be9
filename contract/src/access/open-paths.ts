// The closed list of what the service answers without a bearer token: the health check, sign-in,
// the pages for people, and the reference. Nothing else does; a test holds the server against it,
// and docs/spec-gaps.md says why each is there. What lies below /auth/ follows OAuth's own shapes
// (RFC 6749, 7009, 8628), errors included.
import type { Method } from '../route/route.ts';

export interface OpenPath {
  method: Exclude<Method, 'PUT' | 'PATCH' | 'DELETE'>;
  path: string;
  why: string;
}

export const OPEN_PATHS: readonly OpenPath[] = [
  { method: 'GET', path: '/health', why: 'the health check' },
  { method: 'POST', path: '/auth/device/code', why: 'a device asks for a code that a person approves (RFC 8628)' },
  {
    method: 'POST',
    path: '/auth/token',
    why: 'a device code or refresh token is exchanged for a session token (RFC 6749)',
  },
  {
    method: 'POST',
    path: '/auth/revoke',
    why: 'sign-out of a client that holds a refresh or session token (RFC 7009)',
  },
  { method: 'POST', path: '/auth/session', why: "the console's own refresh: its cookie for a session token" },
  { method: 'POST', path: '/auth/oidc', why: 'begins a sign-in at the OIDC provider' },
  { method: 'GET', path: '/auth/oidc/callback', why: 'the way back from the OIDC provider' },
  { method: 'GET', path: '/sign-in', why: 'page' },
  { method: 'POST', path: '/sign-in', why: 'form of the page' },
  { method: 'GET', path: '/sign-out', why: 'page' },
  { method: 'POST', path: '/sign-out', why: 'form of the page' },
  { method: 'GET', path: '/forgot-password', why: 'page' },
  { method: 'POST', path: '/forgot-password', why: 'form of the page' },
  { method: 'GET', path: '/reset-password', why: 'page; the mailed token is in its query' },
  { method: 'POST', path: '/reset-password', why: 'form of the page' },
  { method: 'GET', path: '/verify-email', why: 'page; the mailed token is in its query' },
  { method: 'POST', path: '/verify-email', why: 'form of the page: verifies, or sends the mail again' },
  { method: 'GET', path: '/welcome', why: 'page that the one-time link of the first start opens' },
  { method: 'POST', path: '/welcome', why: 'form of the page' },
  { method: 'GET', path: '/invitation', why: 'page that the mailed link of an invitation opens' },
  { method: 'POST', path: '/invitation', why: 'form of the page: accepts, with a new account or the one signed in' },
  { method: 'GET', path: '/device', why: 'page on which a person approves a device' },
  { method: 'POST', path: '/device', why: 'form of the page' },
  { method: 'GET', path: '/preview', why: 'page that a team link leads to: lets members of the org on to the preview' },
  { method: 'POST', path: '/billing/stripe', why: "the payment provider's events, which bear its signature" },
  { method: 'GET', path: '/billing/return', why: 'page that the payment provider leads back to' },
  { method: 'GET', path: '/pages.css', why: 'style of the pages' },
  { method: 'GET', path: '/v1/openapi.json', why: 'the published OpenAPI document' },
  { method: 'GET', path: '/docs', why: 'the reference: shows the document' },
  { method: 'GET', path: '/docs/redoc.js', why: 'script of the reference: draws it' },
  { method: 'GET', path: '/docs/start.js', why: 'script of the reference: begins' },
  { method: 'GET', path: '/docs/docs.css', why: 'style of the reference' },
];
