// Pages under test: the whole server on loopback, its log in memory, visitors with cookies.
import assert from 'node:assert/strict';
import type { Role } from '@berth/contract/route/permissions.ts';
import { pino } from 'pino';
import { newServices } from '../../src/control-plane/control-plane.ts';
import { openServer } from '../../src/control-plane/server.ts';
import { listen } from '../../src/http/app.ts';
import { linkTokenSha256, newLinkToken } from '../../src/services/access/one-time-links.ts';
import type { ClientSignIn } from '../../src/services/people/client-sign-in-port.ts';
import type { SignIn } from '../../src/services/people/sign-in-port.ts';
import { newId } from '../../src/store/database/ids.ts';
import { startApi, type TestApi, type TestApiOptions } from '../world/api.ts';

export const PASSWORD = 'a boat in the harbour';

export interface TestSite {
  api: TestApi;
  signIn: SignIn;
  /** Sign-in for device clients. */
  clients: ClientSignIn;
  url: string;
  /** Returns the whole log, at the finest level. */
  log(): string;
  visitor(): TestVisitor;
  /** Creates an account with the password, not signed in. */
  account(options?: { emailVerified?: boolean; name?: string }): Promise<{ userId: string; email: string }>;
  /** Creates a pending invitation to the first org, already mailed. */
  invite(email: string, options?: { role?: Role; expired?: boolean }): Promise<{ id: string; token: string }>;
  close(): Promise<void>;
}

export interface PageResponse {
  status: number;
  headers: Headers;
  text: string;
  heading: string;
  /** Texts of the error summary, without tags. */
  errors: string[];
}

export async function startSite(options: Partial<TestApiOptions> = {}): Promise<TestSite> {
  const api = await startApi({ durable: false, ...options });
  let log = '';
  const { signIn } = api;
  const app = await openServer(
    newServices(
      { ...api.context, log: pino({ level: 'trace' }, { write: (line: string) => void (log += line) }) },
      signIn,
    ),
  );
  const { port } = await listen(app, '127.0.0.1', 0);
  const url = `http://127.0.0.1:${port}`;
  return {
    api,
    signIn,
    clients: signIn,
    url,
    log: () => log,
    visitor: () => new TestVisitor(url),
    account: async ({ emailVerified = true, name = 'Ada Test' } = {}) => {
      const email = `${newId('user')}@example.test`;
      const { userId } = await signIn.createAccount({ email, name, password: PASSWORD, emailVerified });
      return { userId, email };
    },
    invite: async (email, { role = 'member', expired = false } = {}) => {
      const token = newLinkToken();
      const id = newId('invitation');
      await api.db
        .insertInto('invitation')
        .values({
          id,
          org_id: api.orgId,
          email,
          role,
          invited_by: api.userId,
          token_sha256: linkTokenSha256(token),
          expires_at: new Date(Date.now() + (expired ? -1_000 : 86_400_000)),
          sent_at: new Date(),
        })
        .execute();
      return { id, token };
    },
    close: async () => {
      app.server.closeAllConnections();
      await app.close();
      await api.close();
    },
  };
}

/** Visitor with a separate browser. */
export class TestVisitor {
  readonly #url: string;
  readonly #cookies = new Map<string, string>();

  constructor(url: string) {
    this.#url = url;
  }

  /** Cookies of the browser, by name. */
  get cookies(): ReadonlyMap<string, string> {
    return this.#cookies;
  }

  /** `Cookie` header of the browser; a copy stands for a stolen cookie. */
  get cookieHeader(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  async get(path: string): Promise<PageResponse> {
    return await this.#send(path, { method: 'GET' });
  }

  /** Sends a form like a page of the service. */
  async post(
    path: string,
    fields: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<PageResponse> {
    const sent = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/x-www-form-urlencoded', ...headers };
    return await this.#send(path, { method: 'POST', headers: sent, body: new URLSearchParams(fields).toString() });
  }

  /** Signs in and asserts success. */
  async signIn(email: string, password: string = PASSWORD): Promise<void> {
    const { status, text } = await this.post('/sign-in', { email, password });
    assert.equal(status, 303, text);
  }

  async #send(path: string, request: RequestInit): Promise<PageResponse> {
    const headers = new Headers(request.headers);
    if (this.#cookies.size > 0) headers.set('cookie', this.cookieHeader);
    const response = await fetch(this.#url + path, { ...request, headers, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) this.#storeCookie(line);
    const text = await response.text();
    const summary = /<div\s+class="summary"[\s\S]*?<\/div>/.exec(text)?.[0] ?? '';
    return {
      status: response.status,
      headers: response.headers,
      text,
      heading: plain(/<h1>([\s\S]*?)<\/h1>/.exec(text)?.[1] ?? ''),
      errors: [...summary.matchAll(/<li>([\s\S]*?)<\/li>/g)].map(([, item]) => plain(item ?? '')),
    };
  }

  #storeCookie(setCookie: string): void {
    const [pair = '', ...attributes] = setCookie.split(';').map((part) => part.trim());
    const equals = pair.indexOf('=');
    const name = pair.slice(0, equals);
    if (attributes.includes('Max-Age=0')) this.#cookies.delete(name);
    else this.#cookies.set(name, pair.slice(equals + 1));
  }
}

/** Fails all mail until the returned function is called. */
export function breakMail({ context: { mailer } }: TestApi): () => void {
  const send = mailer.send.bind(mailer);
  mailer.send = () => Promise.reject(new Error('the mail server is down'));
  return () => {
    mailer.send = send;
  };
}

/** Strips the tags of markup. */
function plain(markup: string): string {
  const characters: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
  return markup
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&(amp|lt|gt|quot|#39);/g, (_whole, name: string) => characters[name] ?? '')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

/** Returns the token of the newest mail to the address, which must link to the page. */
export function mailedToken(api: TestApi, to: string, page: string): string {
  const mail = api.mails.findLast((one) => one.to === to);
  assert.ok(mail, `no mail to ${to}`);
  const link = new RegExp(`${api.context.settings.publicUrl}${page}\\?token=([\\w-]+)`);
  const [, token = ''] = link.exec(mail.text) ?? [];
  assert.notEqual(token, '', mail.text);
  assert.equal(link.exec(mail.html)?.[1], token);
  return token;
}
