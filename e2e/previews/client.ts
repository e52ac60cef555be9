// A preview client that is not a browser. Connects to the service's port with the preview's host
// header: names below localhost do not resolve in Node. Sends the link's token once, then its
// cookie.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createPreview, type Preview } from '@berth/contract/previews/previews.ts';
import { requestWebSocket } from '../../api/test/world/websocket-client.ts';
import { call, type Caller } from '../world/client.ts';

/** A public link to a port. */
export async function publicLink(
  caller: Caller,
  sandboxId: string,
  port: number,
): Promise<Preview & { id: string; url: string }> {
  const answer = await call(caller, 'POST', `/v1/sandboxes/${sandboxId}/previews`, { port, audience: 'public' });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  const { preview } = createPreview.response.body.parse(answer.body);
  const { id, url } = preview;
  assert.ok(id !== null && url !== null);
  return { ...preview, id, url };
}

/** Host of another port or sandbox, derived from a link. */
export function hostOf(link: string, sandboxId: string, port: number | string): string {
  return new URL(link).host.replace(/^\d+-[a-z2-7]+/, `${port}-${sandboxId.replace('sbx_', '')}`);
}

interface RequestOptions {
  method?: string;
  headers?: Readonly<Record<string, string>>;
  body?: Readable;
}

export interface PreviewResponse {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export class PreviewClient {
  readonly host: string;
  readonly token: string;
  readonly #service: { host: string; port: number };
  readonly #agent = new Agent({ keepAlive: true });
  #cookie: string | undefined;

  /** @param host default: the link's host */
  constructor(caller: Caller, link: string, host = new URL(link).host) {
    const { hostname, port } = new URL(caller.url);
    this.#service = { host: hostname, port: Number(port) };
    this.host = host;
    this.token = new URL(link).searchParams.get('token') ?? '';
    assert.match(this.token, /^bpt_/);
  }

  /** The cookie received for the link, from the first accepted request. */
  get cookie(): string {
    assert.ok(this.#cookie !== undefined, 'the link gave no cookie');
    return this.#cookie;
  }

  /** Requests with the token in the path; keeps the cookie. */
  async byLink(path: string, headers: Readonly<Record<string, string>> = {}): Promise<PreviewResponse> {
    return await this.#take(`${path}?token=${this.token}`, { headers });
  }

  /** Requests with the cookie. */
  async ask(path: string, { headers = {}, ...options }: RequestOptions = {}): Promise<PreviewResponse> {
    return await this.#take(path, { ...options, headers: { cookie: this.cookie, ...headers } });
  }

  /** The response once its head has arrived. */
  async open(path: string, { headers = {}, ...options }: RequestOptions = {}): Promise<IncomingMessage> {
    return await this.#send(path, { ...options, headers: { cookie: this.cookie, ...headers } });
  }

  async webSocket(path: string): Promise<Awaited<ReturnType<typeof requestWebSocket>>> {
    const { host, port } = this.#service;
    return await requestWebSocket(`ws://${host}:${port}${path}`, { host: this.host, cookie: this.cookie });
  }

  /** Response to raw request lines, sent over a new connection; `location` of a redirect. */
  async raw(lines: readonly string[]): Promise<{ status: number; location: string | null; body: string }> {
    const socket = connect(this.#service);
    await once(socket, 'connect');
    socket.write(`${[...lines, 'connection: close'].join('\r\n')}\r\n\r\n`, 'utf8');
    const answer = Buffer.concat((await socket.toArray()) as Buffer[]).toString('utf8');
    const [, status, head, body] = /^HTTP\/1\.1 (\d{3}) (.*?)\r\n\r\n(.*)$/s.exec(answer) ?? [];
    assert.ok(status !== undefined && body !== undefined, `${lines.join(' | ')}: ${answer}`);
    const location = /^location: (.*)$/im.exec(head ?? '')?.[1]?.trim() ?? null;
    return { status: Number(status), location, body };
  }

  leave(): void {
    this.#agent.destroy();
  }

  async #take(path: string, options: RequestOptions): Promise<PreviewResponse> {
    const response = await this.#send(path, options);
    const body = Buffer.concat((await response.toArray()) as Buffer[]);
    const given = response.headers['set-cookie']?.find((cookie) => cookie.includes('berth'));
    if (given !== undefined) this.#cookie = given.split(';', 1)[0];
    return { status: response.statusCode ?? 0, headers: response.headers, body };
  }

  async #send(path: string, { method = 'GET', headers = {}, body }: RequestOptions): Promise<IncomingMessage> {
    const sent = request({
      ...this.#service,
      agent: this.#agent,
      path,
      method,
      headers: { host: this.host, ...headers },
    });
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
    if (body === undefined) sent.end();
    else await pipeline(body, sent);
    const [response] = await answered;
    return response;
  }
}
