// Requests of the MCP endpoint, as the revision 2025-11-25 sends them.
import type { TestApi } from '../world/api.ts';

export interface Posted {
  status: number;
  headers: Headers;
  body: any; // oxlint-disable-line typescript/no-explicit-any
}

export interface PostOptions {
  token?: string | null;
  headers?: Record<string, string>;
  query?: string;
  signal?: AbortSignal;
}

export async function postMcp(
  api: Pick<TestApi, 'url' | 'token'>,
  body: unknown,
  options: PostOptions = {},
): Promise<Posted> {
  const { token = api.token, headers = {}, query = '', signal = null } = options;
  const response = await fetch(`${api.url}/v1/mcp${query}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    signal,
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) };
}

export const listTools = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

export const callTool = (name: string, given: object): object => ({
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: { name, arguments: given },
});

export const namesOf = ({ body }: Posted): string[] => body.result.tools.map(({ name }: { name: string }) => name);

export const remaining = ({ headers }: Posted): number => Number(/r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]);
