// Limits of the anonymous visitors of an address: requests, and what they have open. Members and
// other addresses are not affected.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { Visitors } from '../../src/preview/visitors.ts';
import { cookieValue } from '../../src/services/previews/token.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { startPreview, type Answer, type PreviewWorld } from './world.ts';

const CONNECTIONS = 4;

let world: PreviewWorld;
let held: ServerResponse[];
before(async () => {
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    if (request.url === '/events') {
      held.push(response);
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    } else {
      response.end('app');
    }
  };
  world = await startPreview(serve, {
    settings: { visitors: { connections: CONNECTIONS, requestsPerMinute: 1_000 }, trustedProxies: ['127.0.0.1'] },
  });
  await world.cookie();
});
after(() => world.close());
beforeEach(() => {
  held = [];
});

const from = (address: string): { 'x-forwarded-for': string } => ({ 'x-forwarded-for': address });
const codeOf = ({ status, text }: Answer): unknown[] => [status, (JSON.parse(text) as Body).error.code];
interface Body {
  error: { code: string; message: string };
}

/** A response that does not end; returns what closes it. */
async function openStream(address: string): Promise<() => void> {
  const { request, answer } = await world.begin('/events', {
    headers: { cookie: await world.cookie(), ...from(address) },
  });
  request.on('error', () => undefined);
  request.end();
  (await answer).on('error', () => undefined).resume();
  return () => request.destroy();
}

test('an address has a limit of open streams; closed ones make room, other addresses have their own', async () => {
  const close = await Promise.all(Array.from({ length: CONNECTIONS }, () => openStream('198.51.100.7')));
  const refused = await world.visit('/', { headers: from('198.51.100.7') });
  assert.deepEqual(codeOf(refused), [429, 'too_many_connections']);
  assert.match(refused.text, /limit of 4 for an address without a member \(BERTH_VISITOR_CONNECTIONS\)/);
  assert.equal(refused.headers['retry-after'], '3');
  assert.equal((await world.visit('/', { headers: from('198.51.100.8') })).text, 'app');

  close.forEach((one) => one());
  await untilTrue('their places are free', async () => {
    const { status } = await world.visit('/', { headers: from('198.51.100.7') });
    return status === 200;
  });
  await untilTrue('the app sees them leave', () => held.every(({ destroyed }) => destroyed));
});

test('WebSockets count until they close; so do visitors of one IPv6 network together', async () => {
  const cookie = await world.cookie();
  const headers = (host: number): Record<string, string> => ({ cookie, ...from(`2001:db8::${host}`) });
  const sockets = await Promise.all([1, 2, 3, 4].map((host) => world.webSocket('/', { headers: headers(host) })));
  assert.deepEqual(codeOf(await world.visit('/', { headers: headers(5) })), [429, 'too_many_connections']);
  const refused = await world.openWebSocket('/', [], headers(5));
  const [error] = (await once(refused, 'error')) as [Error];
  assert.match(error.message, /429/);
  sockets.forEach((socket) => socket.close());
  await untilTrue(
    'their places are free',
    async () => (await world.visit('/', { headers: headers(5) })).status === 200,
  );
});

test('a member is not counted, and is let in beside visitors at the limit', async () => {
  const { api, sandboxId } = world;
  const member = await api.makeSession({ role: 'member' });
  const { loginId, userId } = member;
  const expiresAtMs = Date.now() + 60_000;
  const { keys } = api.previewAccess;
  const value = cookieValue(
    keys,
    { kind: 'team', loginId, userId, expiresAtMs, embeddable: false },
    { sandboxId, port: 3000 },
  );
  const cookie = `berth_preview=${api.secret(value, 'the cookie of a member')}`;
  const close = await Promise.all(Array.from({ length: CONNECTIONS }, () => openStream('198.51.100.9')));
  for (let count = 0; count < 2 * CONNECTIONS; count += 1)
    assert.equal((await world.visit('/', { headers: { cookie, ...from('198.51.100.9') } })).text, 'app');
  close.forEach((one) => one());
});

test('requests of an address are limited per minute, refused ones included; Retry-After is exact', () => {
  let nowMs = 0;
  const visitors = new Visitors({ connections: 2, requestsPerMinute: 30 }, () => nowMs);
  const visit = (address: string): unknown => {
    const entered = visitors.enter(address);
    if ('leave' in entered) entered.leave();
    else return [entered.refusal.code, entered.refusal.retryAfterSeconds, entered.refusal.message];
    return 'in';
  };
  for (let count = 0; count < 30; count += 1) assert.equal(visit('198.51.100.1'), 'in');
  assert.deepEqual(visit('198.51.100.1'), [
    'rate_limited',
    2,
    'too many requests from this address: the limit is 30 per minute (BERTH_VISITOR_REQUESTS_PER_MINUTE); retry in 2 s',
  ]);
  assert.equal(visit('198.51.100.2'), 'in');
  nowMs += 2_000;
  assert.equal(visit('198.51.100.1'), 'in');
  assert.notEqual(visit('198.51.100.1'), 'in');
});

test('requests without a valid link, and redirects to the sign-in, count too', async () => {
  const strict = await startPreview((_request, response) => void response.end('app'), {
    settings: { visitors: { connections: CONNECTIONS, requestsPerMinute: 3 } },
  });
  try {
    const made = await strict.api.call('POST', `/v1/sandboxes/${strict.sandboxId}/previews`, {
      body: { port: 3000, audience: 'team' },
    });
    const { pathname, search } = new URL(made.body.preview.url);
    strict.api.secret(new URLSearchParams(search).get('token') ?? '', 'a token of a team link');
    const html = { headers: { accept: 'text/html' } };
    assert.equal((await strict.ask(pathname + search, html)).status, 303);
    assert.equal((await strict.ask('/')).status, 401);
    assert.equal((await strict.ask('/?token=bpt_none')).status, 403);
    assert.deepEqual(codeOf(await strict.ask('/')), [429, 'rate_limited']);
    const page = await strict.ask(pathname + search, html);
    assert.equal(page.status, 429);
    assert.match(page.text, /Too many requests/);
  } finally {
    await strict.close();
  }
});
