// A fake of the /auth/ endpoints with scripted responses. Refresh tokens are single-use and
// counted. The real service: login.test.ts.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface SeenRequest {
  method: string;
  path: string;
  authorization: string | undefined;
  form: Record<string, string>;
}

export type AuthAnswer = { status: number; body: unknown; headers?: Record<string, string> };

export class AuthServer {
  readonly url: string;
  readonly seen: SeenRequest[] = [];
  /** The valid refresh token. */
  refreshToken = 'refresh-0';
  /** Valid session tokens; older ones stay valid, as on the real service. */
  readonly tokens = new Set<string>();
  refreshes = 0;
  /** Lifetime of new tokens in seconds. */
  lifeSeconds = 3_600;
  /** Overrides responses; undefined for the default one. */
  answer: (request: SeenRequest) => AuthAnswer | undefined | Promise<AuthAnswer | undefined> = () => undefined;
  readonly #close: () => void;

  private constructor(port: number, close: () => void) {
    this.url = `http://127.0.0.1:${port}`;
    this.#close = close;
  }

  static async start(): Promise<AuthServer> {
    const server = createServer((request, response) => void handled(api, request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const api = new AuthServer((server.address() as AddressInfo).port, () => {
      server.close();
      server.closeAllConnections();
    });
    return api;
  }

  close(): void {
    this.#close();
  }

  /** The default response. */
  own({ path, form, authorization }: SeenRequest): AuthAnswer {
    if (path === '/auth/token' && form['grant_type'] === 'refresh_token') return this.#refresh(form['refresh_token']);
    if (path === '/auth/revoke') return { status: 200, body: {} };
    if (!path.startsWith('/v1/'))
      return { status: 404, body: { error: { code: 'route_not_found', message: 'no such route' } } };
    if (!this.tokens.has((authorization ?? '').replace(/^Bearer /, '')))
      return { status: 401, body: { error: { code: 'unauthenticated', message: 'the bearer token is unknown' } } };

    if (path === '/v1/me')
      return { status: 200, body: { id: 'usr_one', email: 'ada@example.test', displayName: 'Ada' } };
    if (path === '/v1/me/orgs') return { status: 200, body: { orgs: [] } };
    return { status: 404, body: { error: { code: 'route_not_found', message: 'no such route' } } };
  }

  #refresh(given: string | undefined): AuthAnswer {
    if (given !== this.refreshToken)
      return { status: 400, body: { error: 'invalid_grant', error_description: 'this refresh token is spent' } };
    this.refreshes += 1;
    this.refreshToken = `refresh-${this.refreshes}`;
    const token = `token-${this.refreshes}`;
    this.tokens.add(token);
    return {
      status: 200,
      body: {
        access_token: token,
        token_type: 'Bearer',
        expires_in: this.lifeSeconds,
        refresh_token: this.refreshToken,
      },
    };
  }
}

async function handled(api: AuthServer, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = '', url: path = '', headers } = request;
  const form = Object.fromEntries(new URLSearchParams(await text(request)));
  const seen = { method, path, authorization: headers.authorization, form };
  api.seen.push(seen);
  const answer = (await api.answer(seen)) ?? api.own(seen);
  const body = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
  response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers }).end(body);
}
