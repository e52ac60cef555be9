// Closed list of the requests that the gateway forwards, and of their headers. Other routes reach
// more of the provider's account than a model, such as stored responses and files.
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import type { ModelProvider } from '@berth/protocol/calls/model-access.ts';

interface Route {
  /** Methods with a body. */
  method: 'GET' | 'POST';
  path: string;
  /** Parameters of the query; others are dropped. */
  query?: readonly string[];
}

const ROUTES: Readonly<Record<ModelProvider, readonly Route[]>> = {
  openai: [
    { method: 'POST', path: '/v1/responses' },
    { method: 'POST', path: '/v1/responses/compact' },
    { method: 'GET', path: '/v1/models', query: ['client_version'] },
  ],
  anthropic: [
    { method: 'POST', path: '/v1/messages', query: ['beta'] },
    { method: 'POST', path: '/v1/messages/count_tokens', query: ['beta'] },
    { method: 'GET', path: '/v1/models', query: ['beta', 'limit', 'after_id', 'before_id'] },
  ],
};
const QUERY_VALUE = /^[\w.:-]{1,200}$/;

/** A request of the list: its method, and its path below the endpoint. */
export interface ModelRequest {
  method: Route['method'];
  path: string;
}

export function providerOf(url: string): ModelProvider | null {
  const [root, name] = url.split(/[/?]/, 2);
  return root === '' && (name === 'openai' || name === 'anthropic') ? name : null;
}

/** Null if the list has no such path; the allowed methods if it has no such method. */
export function requestOf(provider: ModelProvider, method: string, url: string): ModelRequest | string[] | null {
  const [path = '', query = ''] = url.slice(1 + provider.length).split('?', 2);
  const routes = ROUTES[provider].filter((route) => route.path === path);
  const route = routes.find((one) => one.method === method);
  if (route === undefined) return routes.length === 0 ? null : routes.map((one) => one.method);
  const kept = [...new URLSearchParams(query)].filter(
    ([name, value]) => route.query?.includes(name) === true && QUERY_VALUE.test(value),
  );
  const suffix = kept.length === 0 ? '' : `?${new URLSearchParams(kept).toString()}`;
  return { method: route.method, path: `${path}${suffix}` };
}

const BODY_HEADERS = ['content-type', 'content-encoding', 'content-length'];
const REQUEST_HEADERS = [
  ...['accept', 'user-agent'],
  ...['anthropic-version', 'anthropic-beta', 'openai-beta', 'x-app', 'x-client-request-id', 'x-openai-subagent'],
  ...['originator', 'version', 'session_id', 'session-id', 'thread_id', 'thread-id', 'conversation_id'],
];
const REQUEST_PREFIXES = ['x-stainless-', 'x-codex-', 'x-openai-internal-codex-', 'x-claude-'];

/** Without the account's name, cookies and hop-by-hop headers. */
const RESPONSE_HEADERS = [
  ...BODY_HEADERS,
  ...['cache-control', 'retry-after', 'retry-after-ms'],
  ...['request-id', 'x-request-id', 'x-should-retry', 'openai-model', 'openai-processing-ms', 'openai-version'],
  ...['x-models-etag', 'x-reasoning-included'],
];
const RESPONSE_PREFIXES = ['x-ratelimit-', 'anthropic-ratelimit-', 'x-codex-'];

/** Headers of the forwarded request: those of the list, and the key. Its response must be plain. */
export function requestHeaders(
  provider: ModelProvider,
  { method }: ModelRequest,
  from: IncomingHttpHeaders,
  key: string,
): OutgoingHttpHeaders {
  const credential = provider === 'openai' ? { authorization: `Bearer ${key}` } : { 'x-api-key': key };
  const body = method === 'POST' ? listed(from, BODY_HEADERS) : {};
  const plain = { 'accept-encoding': 'identity' };
  return { ...listed(from, REQUEST_HEADERS, REQUEST_PREFIXES), ...plain, ...body, ...credential };
}

/** Headers of the response: those of the list, with redacted values. */
export function responseHeaders(from: IncomingHttpHeaders, redact: (value: string) => string): OutgoingHttpHeaders {
  const kept = Object.entries(listed(from, RESPONSE_HEADERS, RESPONSE_PREFIXES));
  return Object.fromEntries(kept.map(([name, value]) => [name, redact(String(value))]));
}

function listed(
  from: IncomingHttpHeaders,
  names: readonly string[],
  prefixes: readonly string[] = [],
): OutgoingHttpHeaders {
  const isListed = (name: string): boolean =>
    names.includes(name) || prefixes.some((prefix) => name.startsWith(prefix));
  return Object.fromEntries(Object.entries(from).filter(([name]) => isListed(name)));
}
