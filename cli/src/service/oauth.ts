// The service's endpoints for sign-in as OAuth has them: a device asks, polls, refreshes, revokes
// (RFC 6749, 7009, 8628). Secrets go into bodies and to the one service alone, never into what an
// error says.
import { z } from 'zod';
import manifest from '../../package.json' with { type: 'json' };
import { CliFailure } from '../output/failure.ts';
import { parseJson } from './json-text.ts';
import { plainText } from '../output/plain-text.ts';
import type { Session } from './profile-file.ts';

const CLIENT_ID = 'berth-cli';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const ANSWER_WITHIN_MS = 10_000;
/** RFC 8628, section 3.5: what holds when the answer names none. */
const POLL_SECONDS = 5;

/** The service said no, in OAuth's words. */
export class OAuthRefusal extends Error {
  override readonly name = 'OAuthRefusal';
  readonly code: string;
  /** Seconds after which it asks to be tried again. */
  readonly retryAfter: number | undefined;

  constructor(code: string, message: string, retryAfter?: number) {
    super(message);
    this.code = code;
    this.retryAfter = retryAfter;
  }
}

/** No answer, or none of the service's own. */
export class OAuthUnreachable extends CliFailure {}

/** Where the endpoints are, and what ends a call early. */
export interface OAuthPlace {
  /** Of the service, without a slash at its end. */
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
  /** Where a person types the code. http or https, as the next one. */
  verificationUri: string;
  /** The same with the code in it. */
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

/** A poll. Throws an OAuthRefusal `authorization_pending` until a person has approved. */
export async function redeemDevice(place: OAuthPlace, deviceCode: string): Promise<Session> {
  const fields = { grant_type: DEVICE_GRANT, device_code: deviceCode, client_id: CLIENT_ID };
  return sessionOf(await post(place, '/auth/token', fields, tokens.required({ refresh_token: true })));
}

/**
 * Another session token. The refresh token may be another one then; the former is good for nothing
 * any more in that case.
 */
export async function refreshSession(place: OAuthPlace, refreshToken: string): Promise<Session> {
  const fields = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: CLIENT_ID };
  const answer = await post(place, '/auth/token', fields, tokens);
  return sessionOf({ ...answer, refresh_token: answer.refresh_token ?? refreshToken });
}

/** Ends a sign-in. Nothing happens when it has ended already. */
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
      // What is in the body is for this service.
      redirect: 'manual',
      signal: AbortSignal.any([AbortSignal.timeout(ANSWER_WITHIN_MS), ...(signal === undefined ? [] : [signal])]),
    });
    text = await response.text();
  } catch (error) {
    signal?.throwIfAborted();
    throw new OAuthUnreachable(`${url} could not be reached: ${reasonOf(error)}`, {
      remedy: '--url, BERTH_URL or the profile says where the API is',
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
  throw new OAuthUnreachable(`${url}${path} was answered ${response.status} by something else than Berth`, {
    remedy: '--url, BERTH_URL or the profile says where the API is',
  });
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `no answer within ${ANSWER_WITHIN_MS / 1_000} s`;
  // `fetch failed` says nothing; its cause does.
  return error.cause instanceof Error && error.cause.message !== '' ? error.cause.message : error.message;
}
