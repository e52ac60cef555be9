// Where the API is and with which key a verb calls it: BERTH_URL and BERTH_API_KEY. The verbs that use it are those of a client and run on whatever machine.
import { errorEnvelope } from '@berth/contract/errors.ts';
import type { Route } from '@berth/contract/route.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import type { z } from 'zod';
import { OperatorFailure } from './failure.ts';
import { apiUrl } from './services/api.ts';
import type { VerbContext } from './verbs/context.ts';

const CALL_DEADLINE_MS = 30_000;
/** Ids of the API have no others. What is none is refused here: it is about to stand in a command line. */
const SANDBOX_ID = /^[A-Za-z0-9_]{1,200}$/;

export interface ApiAccess {
  url: URL;
  token: string;
}

/** Throws when the environment does not say enough. Without BERTH_URL it is the service of this machine. */
export function readApiAccess({ environment, config }: Pick<VerbContext, 'environment' | 'config'>): ApiAccess {
  const token = environment['BERTH_API_KEY'] ?? '';
  if (token === '') {
    throw new OperatorFailure('no API key', { remedy: 'put one into the variable BERTH_API_KEY (./berth keys create makes one)' });
  }
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new OperatorFailure('BERTH_API_KEY is no API key: it has spaces or line ends, or characters that no key has');
  }
  const base = environment['BERTH_URL'] || apiUrl(config);
  const url = URL.parse(base);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new OperatorFailure(`BERTH_URL is '${base}'; it must be the URL of the API, as ${apiUrl(config)}`);
  }
  return { url, token };
}

/** The URL of a route on a sandbox; a path that the API's own URL has is kept. */
export function sandboxRouteUrl({ url }: ApiAccess, route: Route, sandboxId: string, query: Readonly<Record<string, string>> = {}): URL {
  if (!SANDBOX_ID.test(sandboxId)) {
    throw new OperatorFailure(`'${sandboxId}' is no id of a sandbox; one looks like sbx_uodiunxlni4uyqmllemsqh4l`);
  }
  const there = new URL(url);
  there.pathname = there.pathname.replace(/\/$/, '') + route.path.replace('{sandboxId}', sandboxId);
  there.search = new URLSearchParams(query).toString();
  return there;
}

/** The answer of a route on a sandbox that takes no body. A refusal is an {@link OperatorFailure} in the words of the API. */
export async function askOfSandbox<Body>(
  access: ApiAccess,
  route: Route & { response: { body: z.ZodType<Body> } },
  sandboxId: string,
  signal: AbortSignal,
): Promise<Body> {
  const url = sandboxRouteUrl(access, route, sandboxId);
  let status: number;
  let text: string;
  try {
    const response = await fetch(url, {
      method: route.method,
      headers: { authorization: `Bearer ${access.token}` },
      signal: AbortSignal.any([signal, AbortSignal.timeout(CALL_DEADLINE_MS)]),
    });
    status = response.status;
    text = await response.text();
  } catch (error) {
    signal.throwIfAborted();
    throw unreachable(access, error);
  }
  const parsed = status === route.response.status ? route.response.body.safeParse(parseJson(text)) : undefined;
  if (parsed?.success !== true) throw refused(status, text);
  return parsed.data;
}

/** What a refusal says, for people. */
export function refused(status: number | undefined, text: string): OperatorFailure {
  const refusal = errorEnvelope.safeParse(parseJson(text));
  return new OperatorFailure(
    refusal.success
      ? `${refusal.data.error.message} (${refusal.data.error.code})`
      : `the server answered ${status}; is BERTH_URL the URL of the API?`,
  );
}

export function unreachable({ url }: ApiAccess, error: unknown): OperatorFailure {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const why = (cause instanceof Error ? cause.message : String(cause)).trim();
  return new OperatorFailure(`${url.origin} could not be reached: ${why}`, {
    remedy: 'BERTH_URL says where the API is',
    cause: error,
  });
}
