// Refusals of the gateway, in the form of the provider's errors, so that an agent shows the message
// and retries only what a retry can fix.
import type { ServerResponse } from 'node:http';
import type { ModelProvider } from '@berth/protocol/calls/model-access.ts';

/**
 * Status and type of the error at each provider. Codex ends a turn at a 429 and repeats a request
 * after a 403; a 503 is repeated, a 400 is not.
 */
const REFUSALS = {
  unknownPath: { anthropic: [404, 'not_found_error'], openai: [404, 'invalid_request_error'] },
  wrongMethod: { anthropic: [405, 'invalid_request_error'], openai: [405, 'invalid_request_error'] },
  tooLarge: { anthropic: [413, 'request_too_large'], openai: [413, 'invalid_request_error'] },
  noAccess: { anthropic: [403, 'permission_error'], openai: [400, 'invalid_request_error'] },
  tooMany: { anthropic: [429, 'rate_limit_error'], openai: [503, 'server_error'] },
  unavailable: { anthropic: [503, 'overloaded_error'], openai: [503, 'server_error'] },
  badResponse: { anthropic: [502, 'api_error'], openai: [502, 'server_error'] },
  late: { anthropic: [504, 'timeout_error'], openai: [504, 'server_error'] },
} as const satisfies Record<string, Record<ModelProvider, readonly [number, string]>>;

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
  const [status, type] = REFUSALS[kind][provider ?? 'anthropic'];
  const told = `Berth model gateway: ${message}`;
  const body =
    provider === 'openai'
      ? { error: { message: told, type, param: null, code: kind } }
      : { type: 'error', error: { type, message: told } };
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
