// Programs at the service's address: previews named by a header, credentials in headers.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { WebSocket } from 'ws';
import { untilTrue } from '../../../os/test/until.ts';
import { startPreview, type Answer, type PreviewWorld, type RequestOptions } from './world.ts';

let world: PreviewWorld;
let asked: { url: string | undefined; headers: IncomingHttpHeaders }[];
let respond: (response: ServerResponse) => void;
before(async () => {
  world = await startPreview(
    (request, response) => {
      asked.push({ url: request.url, headers: request.headers });
      respond(response);
    },
    { settings: { previewUrl: 'https://previews.example.test', previewCookies: 'proven', requestsPerMinute: 30 } },
  );
});
after(() => world.close());
beforeEach(() => {
  asked = [];
  respond = (response) => void response.end('app');
});

const SERVICE = '127.0.0.1';
const codeOf = ({ text }: Answer): string | undefined => JSON.parse(text).error?.code as string | undefined;
/** Requests the service's address with the preview's name in a header. */
const ask = (path: string, headers: Record<string, string>, options: RequestOptions = {}): Promise<Answer> =>
  world.ask(path, { host: SERVICE, headers: { 'x-berth-preview-host': world.host, ...headers }, ...options });

test('a header names the preview; the app receives a request to its own host', async () => {
  const { text, headers } = await ask('/sign-in?x=1', { 'x-berth-preview-token': world.token, cookie: 'a=1' });
  assert.equal(text, 'app');
  assert.equal(headers['set-cookie'], undefined, 'no cookie for the service’s address');
  assert.equal(asked[0]?.url, '/sign-in?x=1');
  const { host, cookie, ...rest } = asked[0]?.headers ?? {};
  assert.deepEqual([host, cookie, rest['x-berth-forwarded-host']], ['localhost:3000', 'a=1', world.host]);
  const ours = Object.keys(rest).filter((name) => name.startsWith('x-berth-'));
  assert.deepEqual(ours.sort(), ['x-berth-forwarded-host', 'x-berth-forwarded-proto']);
  // By the token in the URL as well, and on the preview's own host.
  assert.equal((await ask(`/?token=${world.token}`, {})).text, 'app');
  assert.equal((await world.ask('/', { headers: { 'x-berth-preview-token': world.token } })).text, 'app');
  const own = { 'x-berth-preview-host': world.host, 'x-berth-preview-token': world.token };
  assert.equal((await world.ask('/', { headers: own })).text, 'app');
});

test('an app’s response at the service’s address is not cached for the service', async () => {
  respond = (response) =>
    void response.writeHead(200, { 'cache-control': 'public, s-maxage=999', 'set-cookie': 's=1; HttpOnly' }).end('app');
  const { headers } = await ask('/', { 'x-berth-preview-token': world.token });
  assert.equal(headers['cache-control'], 'no-store');
  assert.deepEqual(headers['set-cookie'], ['s=1; HttpOnly'], 'unchanged for a program');
});

test('without a credential, or with a wrong one, no preview opens at the service’s address', async () => {
  for (const [headers, status, code] of [
    [{}, 401, 'preview_link_required'],
    [{ 'x-berth-preview-token': 'bpt_x' }, 403, 'preview_link_invalid'],
    [{ 'x-berth-preview-token': 'x' }, 403, 'preview_link_invalid'],
    [{ 'x-berth-preview-host': 'example.test' }, 404, 'preview_not_found'],
    [{ 'x-berth-preview-host': '' }, 404, 'preview_not_found'],
    [{ 'x-berth-preview-host': 'previews.example.test' }, 404, 'preview_not_found'],
    [{ 'x-berth-preview-host': `${world.host}, ${world.host}` }, 404, 'preview_not_found'],
  ] as const) {
    const answer = await ask('/v1/me', headers);
    assert.deepEqual([answer.status, codeOf(answer)], [status, code], JSON.stringify(headers));
  }
  const other = world.host.replace(/^3000/, '3001');
  assert.equal(
    codeOf(await ask('/', { 'x-berth-preview-token': world.token, 'x-berth-preview-host': other })),
    'preview_link_invalid',
  );
  const differs = { 'x-berth-preview-host': other, 'x-berth-preview-token': world.token };
  assert.equal(codeOf(await world.ask('/', { headers: differs })), 'invalid_request', 'two names');
  assert.equal(codeOf(await ask('http://127.0.0.1/', { 'x-berth-preview-token': world.token })), 'invalid_request');
  assert.deepEqual(asked, []);
});

test('no preflight of another origin is granted, so no page can send the headers', async () => {
  const preflight = {
    origin: 'https://evil.example.test',
    'access-control-request-method': 'GET',
    'access-control-request-headers': 'x-berth-preview-token,x-berth-preview-host',
  };
  for (const host of [SERVICE, world.host]) {
    const { status, headers } = await world.ask('/', { method: 'OPTIONS', host, headers: preflight });
    assert.ok(status >= 400, `${status} of ${host}`);
    assert.equal(Object.keys(headers).filter((name) => name.startsWith('access-control-')).length, 0);
  }
  assert.deepEqual(asked, []);
});

test('an API key opens previews of its org, and never reaches the app', async () => {
  const key = await world.api.makeKey({ role: 'viewer' });
  world.api.secret(key, 'an API key');
  for (const headers of [{ 'x-berth-preview-token': key }, { authorization: `Bearer ${key}` }]) {
    assert.equal((await ask('/', headers)).text, 'app');
    assert.equal((await world.ask('/', { headers })).text, 'app', 'on the preview’s host');
  }
  assert.ok(!JSON.stringify(asked).includes(key));
  // Another credential leaves `Authorization` to the app.
  await ask('/', { 'x-berth-preview-token': world.token, authorization: 'Bearer of the app' });
  assert.equal(asked.at(-1)?.headers.authorization, 'Bearer of the app');
  const socket = new WebSocket(`ws://127.0.0.1:${world.port}/`, {
    headers: { 'x-berth-preview-host': world.host, 'x-berth-preview-token': key },
  });
  await once(socket, 'open');
  socket.send('hello');
  const [data] = await once(socket, 'message');
  assert.equal(String(data), 'hello');
  const closed = once(socket, 'close');
  // Revoking the key closes its connections and opens nothing.
  await world.api.db.updateTable('api_key').set({ revoked_at: new Date() }).execute();
  await closed;
  await untilTrue('it opens nothing', async () => (await ask('/', { 'x-berth-preview-token': key })).status === 401);
  await world.api.db.updateTable('api_key').set({ revoked_at: null }).execute();
});

test('keys without the permission, of other orgs and of no one are refused alike, at a bounded rate', async () => {
  const scoped = await world.api.makeKey({ scopes: ['sandbox.connect'] });
  const { token: foreign } = await world.api.makeOrg();
  const refused: unknown[] = [];
  for (const key of [scoped, foreign]) {
    world.api.secret(key, 'an API key');
    const answer = await ask('/', { 'x-berth-preview-token': key });
    refused.push([answer.status, codeOf(answer), answer.text]);
  }
  assert.deepEqual(refused[0], refused[1]);
  assert.equal((refused[0] as unknown[])[0], 401);
  for (let times = 0; times < 40; times += 1) await ask('/', { 'x-berth-preview-token': foreign });
  // A valid key of the same address goes on only if it was valid before.
  const valid = await world.api.makeKey({});
  world.api.secret(valid, 'an API key');
  assert.equal((await ask('/', { 'x-berth-preview-token': valid })).status, 401);
  assert.deepEqual(asked, []);
});
