// Parameters and errors of the OAuth endpoints (RFC 6749, sections 3.2 and 5.2). Errors quote
// names, never values.
import { SignInError } from '../services/people/sign-in-port.ts';

const LONGEST_VALUE = 4_096;

/** An error response of OAuth. */
export class OAuthError extends Error {
  override readonly name = 'OAuthError';
  readonly code: string;
  readonly status: number;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: string, message: string, status = 400, retryAfterSeconds?: number) {
    super(message);
    this.code = code;
    this.status = status;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Converts refusals of sign-in to OAuth errors; null for other errors. */
export function oauthErrorOf(error: unknown): OAuthError | null {
  if (error instanceof OAuthError) return error;
  if (!(error instanceof SignInError)) return null;
  if (error.refusal === 'too_many_attempts')
    return new OAuthError('slow_down', error.message, 429, error.retryAfterSeconds);
  return new OAuthError('invalid_grant', error.message);
}

type Parameters<R extends string, O extends string> = { [name in R]: string } & { [name in O]?: string };

/**
 * Reads parameters of a form or JSON object. Empty ones count as absent, and unknown ones are
 * ignored, as OAuth requires.
 */
export function readParameters<R extends string, O extends string = never>(
  body: unknown,
  required: readonly R[],
  optional: readonly O[] = [],
): Parameters<R, O> {
  const given = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>;
  const read: Record<string, string> = {};
  for (const name of [...required, ...optional]) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (value === undefined || value === '') continue;
    if (Array.isArray(value)) throw new OAuthError('invalid_request', `${name} occurs more than once`);
    if (typeof value !== 'string') throw new OAuthError('invalid_request', `${name} must be text`);
    if (value.length > LONGEST_VALUE)
      throw new OAuthError('invalid_request', `${name} is longer than ${LONGEST_VALUE} characters`);
    read[name] = value;
  }
  const missing = required.find((name) => read[name] === undefined);
  if (missing !== undefined)
    throw new OAuthError('invalid_request', `${missing} is missing; send it as form data or JSON`);
  return read as Parameters<R, O>;
}
