// Limits of the anonymous visitors of an address: requests, and what they have open. Members, other
// addresses and previews of other orgs are not affected.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { Visitors } from '../../src/preview/visitors.ts';
import { cookieValue } from '../../src/services/previews/token.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { startPreview, type Answer, type PreviewWorld } from './world.ts';

/** Limit of an address, and the share of an org that is alone there. */
const CONNECTIONS = 8;
const SHARE = 4;

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
async function openStream(address: string, link?: { host: string; token: string }): Promise<() => void> {
  const path = link === undefined ? '/events' : `/events?token=${link.token}`;
  const { request, answer } = await world.begin(path, {
    headers: { ...(link === undefined ? { cookie: await world.cookie() } : {}), ...from(address) },
    ...(link === undefined ? {} : { host: link.host }),
  });
  request.on('error', () => undefined);
  request.end();
  (await answer).on('error', () => undefined).resume();
  return () => request.destroy();
}

test('an address has a limit of open streams; closed ones make room, other addresses have their own', async () => {
  const close = await Promise.all(Array.from({ length: SHARE }, () => openStream('198.51.100.7')));
  const refused = await world.visit('/', { headers: from('198.51.100.7') });
  assert.deepEqual(codeOf(refused), [429, 'too_many_connections']);
  assert.match(
    refused.text,
    /limit of 8 for an address without a member \(of which an org takes at most half .* leave\) \(BERTH_VISITOR_CONNECTIONS\)/,
  );
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
  const close = await Promise.all(Array.from({ length: SHARE }, () => openStream('198.51.100.9')));
  for (let count = 0; count < CONNECTIONS; count += 1)
    assert.equal((await world.visit('/', { headers: { cookie, ...from('198.51.100.9') } })).text, 'app');
  close.forEach((one) => one());
});

test('no org shuts an address out of the previews of another, by streams or requests', async () => {
  const { api } = world;
  const address = '198.51.100.10';
  const hostile = await api.makeOrg();
  const { id } = await api.makeSandbox('ready', { org_id: hostile.orgId, project_id: hostile.projectId });
  const { stream } = api.front;
  api.front.stream = (_vmId, target) => stream(world.sandboxId, target);
  const made = await api.call('POST', `/v1/sandboxes/${id}/previews`, {
    token: hostile.token,
    body: { port: 3000, audience: 'public' },
  });
  const { host, searchParams } = new URL(made.body.preview.url);
  const link = { host, token: api.secret(searchParams.get('token') ?? '', 'a token of a preview link') };
  const close = await Promise.all(Array.from({ length: SHARE }, () => openStream(address, link)));
  try {
    const refused = await world.ask(`/?token=${link.token}`, { host, headers: from(address) });
    assert.deepEqual(codeOf(refused), [429, 'too_many_connections']);
    assert.equal((await world.visit('/', { headers: from(address) })).text, 'app');
  } finally {
    close.forEach((one) => one());
    api.front.stream = stream;
  }

  const visitors = new Visitors({ connections: CONNECTIONS, requestsPerMinute: 30 }, () => 0);
  const visit = (owner: string): string => {
    const entered = visitors.enter(address, owner);
    if (!('leave' in entered)) return entered.refusal.code;
    entered.leave();
    return 'in';
  };
  for (const owner of ['org_a', '']) {
    for (let count = 0; count < 30; count += 1) assert.equal(visit(owner), 'in');
    assert.equal(visit(owner), 'rate_limited');
  }
  assert.equal(visit('org_b'), 'in');
});

test('the orgs at an address together have its limit, and each takes half of what the others leave', () => {
  const visitors = new Visitors({ connections: CONNECTIONS, requestsPerMinute: 30 }, () => 0);
  const leave: (() => void)[] = [];
  const takeAll = (owner: string): [count: number, message: string] => {
    for (let count = 0; ; count += 1) {
      const entered = visitors.enter('198.51.100.1', owner);
      if ('refusal' in entered) return [count, entered.refusal.message];
      leave.push(entered.leave);
    }
  };
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((owner) => takeAll(owner)[0]),
    [4, 2, 1, 1],
  );
  assert.match(takeAll('e')[1], /limit of 8 for an address without a member \(BERTH_VISITOR_CONNECTIONS\)/);
  leave.forEach((one) => one());
  assert.equal(takeAll('e')[0], 4);
});

test('frames that the link forbids are refused uncounted: any page can repeat them', async () => {
  const address = '198.51.100.11';
  const close = await Promise.all(Array.from({ length: SHARE }, () => openStream(address)));
  const framed = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' };
  const refused = await world.visit('/', { headers: { ...framed, ...from(address) } });
  assert.deepEqual(codeOf(refused), [403, 'preview_cross_origin']);
  close.forEach((one) => one());
});

test('requests of an address are limited per minute, refused ones included; Retry-After is exact', () => {
  let nowMs = 0;
  const visitors = new Visitors({ connections: 2, requestsPerMinute: 30 }, () => nowMs);
  const visit = (address: string): unknown => {
    const entered = visitors.enter(address, 'org_a');
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
    // Each sandbox has its own redirects; all visitors without a valid link count together.
    for (let count = 0; count < 3; count += 1) assert.equal((await strict.ask(pathname + search, html)).status, 303);
    assert.equal((await strict.ask('/')).status, 401);
    assert.equal((await strict.ask('/?token=bpt_none')).status, 403);
    assert.equal((await strict.ask('/', { host: strict.host.replace('3000', '3001') })).status, 401);
    assert.deepEqual(codeOf(await strict.ask('/')), [429, 'rate_limited']);
    const page = await strict.ask(pathname + search, html);
    assert.equal(page.status, 429);
    assert.match(page.text, /Too many requests/);
  } finally {
    await strict.close();
  }
});
