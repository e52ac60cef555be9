// Sends one request of the fuzzer with a timeout, and validates the response against the contract:
// schema, envelope, status, error list.
import { request as httpRequest } from 'node:http';
import { errorEnvelope, type ErrorCode } from '@berth/contract/route/errors.ts';
import { errorsOf, statusOf, type Route } from '@berth/contract/route/route.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import type { Caller } from '../../world/client.ts';
import type { FuzzAnswer, FuzzRequest } from './kind.ts';
import type { FuzzReport } from './report.ts';

/** Longer than any response may take: a file call on a slow VM. */
export const HUNG_AFTER_MS = 90_000;
const SHOWN_CHARACTERS = 300;

/** Error codes allowed without a route, including for unparsable requests. */
const WITHOUT_ROUTE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'route_not_found',
  'method_not_allowed',
  'invalid_request',
  'invalid_json',
  'unsupported_media_type',
  'payload_too_large',
  'request_header_too_large',
  'unauthenticated',
]);

export class FuzzClient {
  readonly #caller: Pick<Caller, 'url' | 'token'>;
  readonly #report: FuzzReport;
  readonly #hungAfterMs: number;

  constructor(caller: Pick<Caller, 'url' | 'token'>, report: FuzzReport, hungAfterMs = HUNG_AFTER_MS) {
    this.#caller = caller;
    this.#report = report;
    this.#hungAfterMs = hungAfterMs;
  }

  /** @param who names the sender in findings */
  async send(who: string, request: FuzzRequest): Promise<FuzzAnswer | null> {
    this.#report.requests += 1;
    const what = `${who}: ${shown(request)}`;
    let answer: { status: number; text: string };
    try {
      answer = await exchange(this.#caller, request, this.#hungAfterMs);
    } catch (error) {
      const hung = (error as Error).name === 'TimeoutError';
      this.#report.found(
        hung ? 'hung' : 'wrong',
        `${what}: ${hung ? `no answer within ${this.#hungAfterMs} ms` : String(error)}`,
      );
      return null;
    }
    const route = routeOf(request);
    const fault = faultIn(request, route, answer);
    this.#report.answered(answer.status, `${route?.name ?? 'no route'}: ${answer.status}${codeIn(answer.text)}`);
    if (fault !== null) {
      this.#report.found(
        answer.status === 500 ? 'fault' : 'wrong',
        `${what}: ${answer.status}, ${fault}: ${answer.text.slice(0, SHOWN_CHARACTERS)}`,
      );
      return null;
    }
    return { status: answer.status, body: answer.text === '' ? undefined : JSON.parse(answer.text) };
  }
}

/** Fault of a response; null: none. */
function faultIn(
  { method }: FuzzRequest,
  route: Route | undefined,
  { status, text }: { status: number; text: string },
): string | null {
  if (method === 'HEAD') return text === '' && status < 500 ? null : 'no answer to HEAD';
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    return `no JSON (${String(error)})`;
  }
  if (route !== undefined && status === route.response.status) {
    const parsed = route.response.body.safeParse(body);
    return parsed.success ? null : `outside the schema of ${route.name}: ${parsed.error.message}`;
  }
  const envelope = errorEnvelope.safeParse(body);
  if (!envelope.success) return 'no error envelope';
  const { code } = envelope.data.error;
  if (statusOf(code) !== status) return `${code} with another status than its own`;
  if (status >= 500) return 'a fault of the service';
  const possible = route === undefined ? WITHOUT_ROUTE : errorsOf(route);
  return possible.has(code) ? null : `${code} is not among the errors of ${route?.name ?? 'what has no route'}`;
}

function routeOf({ method, target }: FuzzRequest): Route | undefined {
  const path = target.split('?', 1)[0] ?? '';
  const asked = method === 'HEAD' ? 'GET' : method;
  return ROUTES.find(
    (route) => route.method === asked && new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path),
  );
}

function codeIn(text: string): string {
  const code = /"code":"(\w+)"/.exec(text.slice(0, 5_000))?.[1];
  return code === undefined ? '' : ` ${code}`;
}

function shown({ method, target, body }: FuzzRequest): string {
  const content = body === undefined ? '' : ` ${body.toString('latin1' as never).slice(0, SHOWN_CHARACTERS)}`;
  return `${method} ${target.slice(0, SHOWN_CHARACTERS)}${content}`;
}

function exchange(
  caller: Pick<Caller, 'url' | 'token'>,
  { method, target, headers, body }: FuzzRequest,
  hungAfterMs: number,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(caller.url);
    const length =
      body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const sent = httpRequest({
      hostname,
      port,
      method,
      path: target,
      agent: false,
      headers: { authorization: `Bearer ${caller.token}`, ...length, ...headers },
      signal: AbortSignal.timeout(hungAfterMs),
    });
    sent.once('error', (error: Error & { cause?: unknown }) =>
      reject(error.cause instanceof Error ? error.cause : error),
    );
    sent.once('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('error', reject);
      response.once('end', () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
      );
    });
    sent.end(body);
  });
}
