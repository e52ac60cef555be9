// Real OIDC provider (oidc-provider) on loopback with the test's users, and a browser that passes
// through it without prompts.
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { Provider } from 'oidc-provider';
import type { OidcConfig } from '../../src/config/config.ts';

interface ProviderAccount {
  sub: string;
  email?: string;
  email_verified?: boolean;
  name?: string;
}

export interface TestProvider {
  config: OidcConfig;
  /** Next user to sign in; null refuses. */
  who: ProviderAccount | null;
  close(): Promise<void>;
}

const CLIENT = { clientId: 'berth', clientSecret: 'a secret/with+signs that:must be encoded' };

/** Configuration of an API for a provider at the port, running or not. */
export function configOf(port: number): OidcConfig {
  return { issuer: `http://127.0.0.1:${port}`, ...CLIENT, name: 'Test ID' };
}

export async function startProvider({
  publicUrl,
  port = 0,
  claimsInIdToken = false,
}: {
  publicUrl: string;
  port?: number;
  /** Otherwise claims are only at the userinfo endpoint, the OpenID Connect default. */
  claimsInIdToken?: boolean;
}): Promise<TestProvider> {
  const server: Server = createServer();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const config = configOf((server.address() as AddressInfo).port);
  const people = new Map<string, ProviderAccount>();
  const provider = new Provider(config.issuer, {
    clients: [
      {
        client_id: CLIENT.clientId,
        client_secret: CLIENT.clientSecret,
        redirect_uris: [`${publicUrl}/auth/oidc/callback`],
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ],
    cookies: { keys: ['a key of the test'] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    conformIdTokenClaims: !claimsInIdToken,
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
    findAccount: (_context, sub) => ({ accountId: sub, claims: () => Promise.resolve({ ...people.get(sub), sub }) }),
    loadExistingGrant: async ({ oidc }) => {
      const grant = new oidc.provider.Grant({
        clientId: oidc.client?.clientId ?? '',
        accountId: oidc.session?.accountId ?? '',
      });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
  });
  const started: TestProvider = {
    config,
    who: null,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  const answer = provider.callback();
  server.on('request', (request, response) => {
    if (request.url?.startsWith('/interaction/') !== true) {
      void answer(request, response);
      return;
    }
    const { who } = started;
    if (who !== null) people.set(who.sub, who);
    const result =
      who === null ? { error: 'access_denied', error_description: 'not today' } : { login: { accountId: who.sub } };
    void provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
  });
  return started;
}

/** Walks a browser through the provider from its redirect; resolves with the callback URL. */
export async function signInAtProvider(location: string, publicUrl: string): Promise<URL> {
  const jar = new Map<string, string>();
  let url = new URL(location);
  for (let step = 0; step < 10 && url.origin !== publicUrl; step += 1) {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...jar].map((pair) => pair.join('=')).join('; ') },
    });
    const text = await response.text();
    const to = response.headers.get('location');
    assert.ok(to !== null, `the provider answered ${response.status} at ${url.pathname}: ${text.slice(0, 500)}`);
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      jar.set(name, value);
    }
    url = new URL(to, url);
  }
  assert.equal(url.origin, publicUrl);
  return url;
}
