// Forged claims of an OIDC provider or an impostor sign nobody in. The provider here signs anything
// the test wants.
import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import type { ClientSignIn } from '../../src/services/people/client-sign-in-port.ts';
import type { SignInError } from '../../src/services/people/sign-in-port.ts';
import { OidcSignIn } from '../../src/sign-in/oidc.ts';
import { openSignIn } from '../../src/sign-in/sign-in.ts';
import { startApi, type TestApi } from '../world/api.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { makePerson, newCaller } from './client.ts';

const CLIENT_ID = 'berth';
const CLIENT_SECRET = 'a shared secret that is long enough for HMAC';
const EMAIL = 'victim@example.test';
const keys = generateKeyPairSync('rsa', { modulusLength: 2_048 });
const otherKeys = generateKeyPairSync('rsa', { modulusLength: 2_048 });

interface Forgery {
  claims?: Record<string, unknown>;
  /** Omitted claims. */
  without?: string[];
  algorithm?: 'RS256' | 'HS256' | 'none';
  key?: KeyObject;
  token?: string | null;
  userinfo?: Record<string, unknown>;
}

let api: TestApi;
let server: Server;
let issuer: string;
let signIn: ClientSignIn;
let userId: string;
let forgery: Forgery = {};
let nonce = '';
let document: Record<string, unknown> = {};
/** Delays every response. */
let silence: Promise<void> = Promise.resolve();

before(async () => {
  api = await startApi({ durable: false });
  server = createServer((request, response) => {
    void silence.then(() => {
      const body = answerOf(request.url ?? '');
      response
        .writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' })
        .end(JSON.stringify(body ?? {}));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  document = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/keys`,
    userinfo_endpoint: `${issuer}/userinfo`,
    id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'],
  };
  userId = (await makePerson(api.signIn, { email: EMAIL })).userId;
  signIn = newSignIn();
});
after(async () => {
  server.closeAllConnections();
  server.close();
  await api.close();
});
beforeEach(() => {
  forgery = {};
});

const configured = () => ({ issuer, clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, name: 'Liar' });
const newSignIn = (): ClientSignIn => openSignIn({ ...api.context, oidc: configured() });

function answerOf(url: string): object | undefined {
  switch (url) {
    case '/.well-known/openid-configuration':
      return document;
    case '/keys':
      return { keys: [{ ...keys.publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'RS256', use: 'sig' }] };
    case '/token':
      return {
        access_token: 'an access token',
        token_type: 'Bearer',
        ...(forgery.token === null ? {} : { id_token: forgery.token ?? idToken() }),
      };
    case '/userinfo':
      return { sub: 'somebody', email: EMAIL, email_verified: true, ...forgery.userinfo };
    default:
      return undefined;
  }
}

function idToken(): string {
  const { claims = {}, without = [], algorithm = 'RS256', key = keys.privateKey } = forgery;
  const now = Math.floor(Date.now() / 1_000);
  const told: Record<string, unknown> = {
    iss: issuer,
    aud: CLIENT_ID,
    sub: 'somebody',
    nonce,
    iat: now,
    exp: now + 300,
    email: EMAIL,
    email_verified: true,
    ...claims,
  };
  for (const name of without) delete told[name];
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${encode({ alg: algorithm, kid: 'one' })}.${encode(told)}`;
  switch (algorithm) {
    case 'RS256':
      return `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`;
    case 'HS256':
      return `${signed}.${createHmac('sha256', CLIENT_SECRET).update(signed).digest('base64url')}`;
    default:
      return `${signed}.`;
  }
}

async function signInThere(): Promise<string> {
  const { location, setCookies } = await signIn.beginOidc('/');
  const query = new URL(location).searchParams;
  nonce = query.get('nonce') ?? '';
  const cookie = setCookies.map((line) => line.split(';', 1)[0]).join('; ');
  const { login } = await signIn.finishOidc(
    { code: 'x', state: query.get('state') ?? '', iss: issuer },
    cookie,
    newCaller(),
  );
  return login.userId;
}

test('a valid address from the id token or the userinfo endpoint signs in', async () => {
  assert.equal(await signInThere(), userId);
  forgery = { without: ['email', 'email_verified'] };
  assert.equal(await signInThere(), userId);
  forgery = { claims: { aud: [CLIENT_ID, 'another'], azp: CLIENT_ID, email_verified: 'true' } };
  assert.equal(await signInThere(), userId);
});

test("a provider's claims about an invitation grant nothing", async () => {
  const email = 'uninvited@example.test';
  forgery = { claims: { sub: 'nobody', email, newAccount: { address: email, verdict: 'counted' } } };
  await assert.rejects(signInThere(), (error: SignInError) => error.refusal === 'sign_up_closed');
  forgery = {
    claims: { sub: 'nobody' },
    without: ['email', 'email_verified'],
    userinfo: { sub: 'nobody', email, newAccount: { address: email, verdict: 'counted' } },
  };
  await assert.rejects(signInThere(), (error: SignInError) => error.refusal === 'sign_up_closed');
  assert.equal(await api.db.selectFrom('user').select('id').where('email', '=', email).executeTakeFirst(), undefined);
});

const second = 1_000;
const FORGERIES: Record<string, () => Forgery> = {
  'signed with another key': () => ({ key: otherKeys.privateKey }),
  'signed with the client secret': () => ({ algorithm: 'HS256' }),
  'not signed at all': () => ({ algorithm: 'none' }),
  'of another issuer': () => ({ claims: { iss: 'https://evil.test' } }),
  'for another client': () => ({ claims: { aud: 'another' } }),
  'for several clients, made for another': () => ({ claims: { aud: [CLIENT_ID, 'another'], azp: 'another' } }),
  'of another sign-in': () => ({ claims: { nonce: 'another' } }),
  'of no sign-in': () => ({ without: ['nonce'] }),
  'that has expired': () => ({ claims: { exp: Math.floor(Date.now() / second) - 60 } }),
  'that never expires': () => ({ without: ['exp'] }),
  'that is not valid yet': () => ({ claims: { nbf: Math.floor(Date.now() / second) + 600 } }),
  'about nobody': () => ({ without: ['sub'] }),
  'that is no token': () => ({ token: 'opaque' }),
  'that is not there': () => ({ token: null }),
};
for (const [what, told] of Object.entries(FORGERIES)) {
  test(`an id token ${what} signs nobody in`, async () => {
    forgery = told();
    await assert.rejects(signInThere(), (error: SignInError) => error.refusal === 'provider_refused');
  });
}

test('userinfo of another subject signs nobody in', async () => {
  forgery = { without: ['email', 'email_verified'], userinfo: { sub: 'somebody else' } };
  await assert.rejects(signInThere(), (error: SignInError) => error.refusal === 'provider_refused');
});

test("the id token's address is not verified by userinfo about another address", async () => {
  forgery = { claims: { sub: 'unverified', email_verified: false } };
  await assert.rejects(signInThere(), (error: SignInError) => error.refusal === 'email_not_verified');
});

test('a callback that names another issuer signs nobody in', async () => {
  const { location, setCookies } = await signIn.beginOidc('/');
  const state = new URL(location).searchParams.get('state') ?? '';
  const cookie = setCookies.map((line) => line.split(';', 1)[0]).join('; ');
  await assert.rejects(
    signIn.finishOidc({ code: 'x', state, iss: 'https://evil.test' }, cookie, newCaller()),
    (error: SignInError) => error.refusal === 'provider_refused',
  );
});

test('an invalid discovery document makes the provider unavailable until it is valid', async () => {
  const right = document;
  const sceptic = newSignIn();
  for (const wrong of [
    {},
    { ...right, issuer: 'https://evil.test' },
    { ...right, jwks_uri: undefined },
    { ...right, token_endpoint: 'x' },
  ]) {
    document = wrong;
    await assert.rejects(sceptic.beginOidc('/'), (error: SignInError) => error.refusal === 'provider_unavailable');
  }
  document = right;
  assert.equal(new URL((await sceptic.beginOidc('/')).location).origin, issuer);
});

test('a silent provider times out at the start and at the callback, and recovers', async () => {
  const unavailable = (error: SignInError): boolean => error.refusal === 'provider_unavailable';
  const hasty = new OidcSignIn({ ...api.context, throttle: () => Promise.resolve() }, configured(), {
    openMs: 20,
    endMs: 20,
  });
  let speak = (): void => undefined;
  const fallSilent = (): void => {
    silence = new Promise((resolve) => (speak = resolve));
  };
  fallSilent();
  await assert.rejects(hasty.begin('/'), unavailable);
  await assert.rejects(hasty.begin('/'), unavailable);
  speak();
  // Concurrent requests share the discovery in flight, whenever its response arrives.
  let begun: Awaited<ReturnType<typeof hasty.begin>> | undefined;
  await untilTrue('the provider is used', async () => {
    begun = await hasty.begin('/').catch(() => undefined);
    return begun !== undefined;
  });
  const { location, setCookies } = begun ?? { location: '', setCookies: [] };
  const state = new URL(location).searchParams.get('state') ?? '';
  fallSilent();
  await assert.rejects(hasty.finish({ code: 'x', state }, setCookies[0]?.split(';', 1)[0], newCaller()), unavailable);
  speak();
});
