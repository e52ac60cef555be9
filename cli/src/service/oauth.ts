// OAuth endpoints of the service: device code, polling, refresh and revocation (RFC 6749, 7009,
// 8628). Secrets are sent only in bodies, and never appear in errors.
import { z } from 'zod';
import manifest from '../../package.json' with { type: 'json' };
import { CliFailure } from '../output/failure.ts';
import { addressRemedy } from '../output/address-remedy.ts';
import { parseJson } from './json-text.ts';
import { plainText } from '../output/plain-text.ts';
import type { Session } from './profile-file.ts';

const CLIENT_ID = 'berth-cli';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const ANSWER_WITHIN_MS = 10_000;
/** Default interval of RFC 8628, section 3.5. */
const POLL_SECONDS = 5;

/** An OAuth error response. */
export class OAuthRefusal extends Error {
  override readonly name = 'OAuthRefusal';
  readonly code: string;
  /** From Retry-After, in seconds. */
  readonly retryAfter: number | undefined;

  constructor(code: string, message: string, retryAfter?: number) {
    super(message);
    this.code = code;
    this.retryAfter = retryAfter;
  }
}

/** No response, or none of Berth. */
export class OAuthUnreachable extends CliFailure {}

export interface OAuthPlace {
  /** Without a trailing slash. */
  url: string;
  signal?: AbortSignal | undefined;
}

const webAddress = z.url({ protocol: /^https?$/ });
const refusal = z.object({ error: z.string(), error_description: z.string().default('') });
const device = z.object({
  device_code: z.string(),
  user_code: z.string(),
  verification_uri: webAddress,
  verification_uri_complete: webAddress.optional(),
  expires_in: z.number().positive(),
  interval: z.number().positive().default(POLL_SECONDS),
});
const tokens = z.object({
  access_token: z.string(),
  token_type: z.string().regex(/^bearer$/i),
  expires_in: z.number().positive(),
  refresh_token: z.string().optional(),
});

export interface DeviceRequest {
  deviceCode: string;
  userCode: string;
  /** Page to enter the code; http or https. */
  verificationUri: string;
  /** The same page with the code. */
  verificationUriComplete: string;
  expiresInSeconds: number;
  intervalSeconds: number;
}

export async function requestDevice(place: OAuthPlace): Promise<DeviceRequest> {
  const answer = await post(place, '/auth/device/code', { client_id: CLIENT_ID }, device);
  return {
    deviceCode: answer.device_code,
    userCode: answer.user_code,
    verificationUri: new URL(answer.verification_uri).href,
    verificationUriComplete: new URL(answer.verification_uri_complete ?? answer.verification_uri).href,
    expiresInSeconds: answer.expires_in,
    intervalSeconds: answer.interval,
  };
}

/** Polls once. Throws an OAuthRefusal `authorization_pending` until the user approves. */
export async function redeemDevice(place: OAuthPlace, deviceCode: string): Promise<Session> {
  const fields = { grant_type: DEVICE_GRANT, device_code: deviceCode, client_id: CLIENT_ID };
  return sessionOf(await post(place, '/auth/token', fields, tokens.required({ refresh_token: true })));
}

/** Requests a new session token. A new refresh token in the response invalidates the old one. */
export async function refreshSession(place: OAuthPlace, refreshToken: string): Promise<Session> {
  const fields = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: CLIENT_ID };
  const answer = await post(place, '/auth/token', fields, tokens);
  return sessionOf({ ...answer, refresh_token: answer.refresh_token ?? refreshToken });
}

/** Revokes a sign-in; a no-op if it has ended. */
export async function revokeSession(place: OAuthPlace, refreshToken: string): Promise<void> {
  await post(place, '/auth/revoke', { token: refreshToken }, z.object({}));
}

function sessionOf(answer: { access_token: string; expires_in: number; refresh_token: string }): Session {
  return {
    token: answer.access_token,
    expiresAt: new Date(Date.now() + answer.expires_in * 1_000).toISOString(),
    refreshToken: answer.refresh_token,
  };
}

async function post<T>(
  { url, signal }: OAuthPlace,
  path: string,
  fields: Record<string, string>,
  shape: z.ZodType<T>,
): Promise<T> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(url + path, {
      method: 'POST',
      body: new URLSearchParams(fields),
      headers: { accept: 'application/json', 'user-agent': `berth/${manifest.version}` },
      // The body has secrets for this service only.
      redirect: 'manual',
      signal: AbortSignal.any([AbortSignal.timeout(ANSWER_WITHIN_MS), ...(signal === undefined ? [] : [signal])]),
    });
    text = await response.text();
  } catch (error) {
    signal?.throwIfAborted();
    throw new OAuthUnreachable(`cannot reach ${url}: ${reasonOf(error)}`, {
      remedy: addressRemedy(url, true),
      cause: error,
    });
  }
  const body = parseJson(text);
  const answer = shape.safeParse(body);
  if (response.status === 200 && answer.success) return answer.data;
  const refused = refusal.safeParse(body);
  if (response.status >= 400 && refused.success) {
    const { error, error_description: description } = refused.data;
    const wait = Number(response.headers.get('retry-after') ?? Number.NaN);
    throw new OAuthRefusal(
      error,
      plainText(description === '' ? error : description),
      Number.isFinite(wait) ? wait : undefined,
    );
  }
  throw new OAuthUnreachable(
    `${url}${path}: unexpected response with status ${response.status}, not from a Berth service`,
    { remedy: addressRemedy(url, false) },
  );
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `no answer within ${ANSWER_WITHIN_MS / 1_000} s`;
  // Node reports `fetch failed`; the cause has the reason.
  return error.cause instanceof Error && error.cause.message !== '' ? error.cause.message : error.message;
}
