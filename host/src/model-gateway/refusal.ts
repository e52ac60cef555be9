// Refusals of the gateway, in the form of the provider's errors, so that an agent shows the message
// and retries only what a retry can fix.
import type { ServerResponse } from 'node:http';
import type { ModelProvider } from '@berth/protocol/calls/model-access.ts';

/** Status, and the type of the error at each provider. */
const REFUSALS = {
  unknownPath: [404, 'not_found_error', 'invalid_request_error'],
  wrongMethod: [405, 'invalid_request_error', 'invalid_request_error'],
  tooLarge: [413, 'request_too_large', 'invalid_request_error'],
  noAccess: [403, 'permission_error', 'invalid_request_error'],
  tooMany: [429, 'rate_limit_error', 'rate_limit_exceeded'],
  unavailable: [503, 'overloaded_error', 'server_error'],
  badResponse: [502, 'api_error', 'server_error'],
  late: [504, 'timeout_error', 'server_error'],
} as const satisfies Record<string, readonly [number, string, string]>;

export class Refusal extends Error {
  readonly kind: keyof typeof REFUSALS;
  readonly headers: Readonly<Record<string, string>>;

  constructor(kind: keyof typeof REFUSALS, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.kind = kind;
    this.headers = headers;
  }
}

/** Does nothing once the response has begun. */
export function sendRefusal(response: ServerResponse, provider: ModelProvider | null, refusal: Refusal): void {
  if (response.headersSent || response.destroyed) return;
  const { kind, message, headers } = refusal;
  const [status, anthropic, openai] = REFUSALS[kind];
  const told = `Berth model gateway: ${message}`;
  const body =
    provider === 'openai'
      ? { error: { message: told, type: openai, param: null, code: kind } }
      : { type: 'error', error: { type: anthropic, message: told } };
  const bytes = Buffer.from(JSON.stringify(body));
  // The rest of a refused body is not awaited.
  const connection = response.req.complete ? {} : { connection: 'close' };
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': bytes.length,
    ...connection,
    ...headers,
  });
  response.end(bytes);
}
