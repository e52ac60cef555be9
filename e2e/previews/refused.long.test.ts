// Limits of previews on a real VM: they never lead to the guest daemon, another port or another
// sandbox, and end with their link or sandbox. Includes the pages shown instead.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { after, before, test } from 'node:test';
import { errorEnvelope } from '@berth/contract/route/errors.ts';
import { GUEST_PORT } from '@berth/protocol/guest.ts';
import { awakeSandbox, call, destroySandbox, errorOf, sleepSandbox, wakeSandbox } from '../world/client.ts';
import { startInstance, type Instance } from '../world/instance.ts';
import { APP_PORT, OTHER_PORT, runInGuest, startApp } from './app.ts';
import { hostOf, PreviewClient, publicLink, type PreviewResponse } from './client.ts';
import { until } from '../../os/test/until.ts';

const NOBODY_PORT = 3_999;
/** Responses of the service that refuse access; none of them is the guest daemon's. */
const REFUSALS: ReadonlySet<string> = new Set([
  '400 invalid_request',
  '401 preview_link_required',
  '403 preview_link_invalid',
  '404 preview_not_found',
  // The host name ends early, as at a comma: it is the service's host then, which lacks the path.
  '404 route_not_found',
  // Likewise: the root of the service.
  '303 /console',
]);

let berth: Instance;
/** Two sandboxes with the app on both ports, and a valid link to the first. */
let id: string;
let otherId: string;
let link: string;
let previewClient: PreviewClient;
const previewClients: PreviewClient[] = [];

before(async () => {
  berth = await startInstance('previews-refused');
  id = (await awakeSandbox(berth)).id;
  otherId = (await awakeSandbox(berth)).id;
  await startApp(berth, id);
  await startApp(berth, otherId);
  ({ url: link } = await publicLink(berth, id, APP_PORT));
  previewClient = openPreviewClient(link);
  assert.equal((await previewClient.byLink('/')).status, 200);
});

after(async () => {
  for (const each of previewClients) each.leave();
  await berth?.end();
});

function openPreviewClient(url: string, host?: string): PreviewClient {
  const made = new PreviewClient(berth, url, host);
  previewClients.push(made);
  return made;
}

/** Code of a refusal; fails unless the service refused. */
function codeOf({ status, body }: PreviewResponse, expected: number): string {
  assert.equal(status, expected, body.toString().slice(0, 500));
  return errorEnvelope.parse(JSON.parse(body.toString())).error.code;
}

/** Heading of the page that a browser gets. */
async function pageFor(of: PreviewClient, expected: number): Promise<string> {
  const { status, headers, body } = await of.byLink('/', { accept: 'text/html,*/*;q=0.8' });
  assert.deepEqual(
    [status, headers['content-type'], headers['cache-control']],
    [expected, 'text/html; charset=utf-8', 'no-store'],
    body.toString().slice(0, 500),
  );
  return /<h1[^>]*>([^<]*)<\/h1>/.exec(body.toString())?.[1]?.trim() ?? body.toString();
}

test('the guest daemon runs, and no spelling of its port reaches it', async () => {
  assert.match(
    await runInGuest(berth, id, `curl -s -i http://127.0.0.1:${GUEST_PORT}/`),
    /^HTTP\/1\.1 401 .*needs the secret of the machine/s,
  );
  for (const audience of ['public', 'team']) {
    const asked = await call(berth, 'POST', `/v1/sandboxes/${id}/previews`, { port: GUEST_PORT, audience });
    assert.equal(errorOf(asked, 403).code, 'port_forbidden');
  }
  for (const port of [
    String(GUEST_PORT),
    `${GUEST_PORT}.0`,
    `0${GUEST_PORT}`,
    ` ${GUEST_PORT}`,
    '0x3db',
    GUEST_PORT + 65_536,
  ]) {
    const asked = await call(berth, 'POST', `/v1/sandboxes/${id}/previews`, { port, audience: 'public' });
    assert.equal(errorOf(asked, 400).code, 'invalid_request', String(port));
  }

  assert.equal(GUEST_PORT, 987, 'the spellings below are of this number');
  const spellings = [
    ...[
      '987',
      '0987',
      '00987',
      '+987',
      '-987',
      '987.0',
      '9_87',
      '0x3db',
      '0o1733',
      '9.87e2',
      '66523',
      '%39%38%37',
      '٩٨٧',
      '9８7',
      '987\t',
    ],
    ...['3000,987', '987,3000', '3000-987', '987-3000', '3000@987', '987#3000', '987/3000', '3000:987', '987:3000'],
  ];
  const others: string[] = [];
  for (const spelling of spellings) {
    const host = hostOf(link, id, spelling);
    for (const way of [
      [`GET / HTTP/1.1`],
      [`GET http://${host}/ HTTP/1.1`],
      [`GET //${host}/ HTTP/1.1`],
      ['POST /v1/exec HTTP/1.1', 'content-length: 0'],
    ]) {
      const [line = '', ...rest] = way;
      for (const target of [line, line.replace(/ HTTP/, `?token=${previewClient.token} HTTP`)]) {
        const { status, location, body } = await previewClient.raw([
          target,
          `host: ${host}`,
          `cookie: ${previewClient.cookie}`,
          ...rest,
        ]);
        const refusal = `${status} ${location ?? errorEnvelope.parse(JSON.parse(body)).error.code}`;
        if (!REFUSALS.has(refusal)) others.push(`${target} with host ${host}: ${refusal}`);
      }
    }
  }
  assert.deepEqual(others, []);
});

test('a request with two hosts, or another host in its target, reaches neither', async () => {
  for (const other of [hostOf(link, id, GUEST_PORT), hostOf(link, id, OTHER_PORT), hostOf(link, otherId, APP_PORT)]) {
    const cookie = `cookie: ${previewClient.cookie}`;
    for (const lines of [
      ['GET / HTTP/1.1', `host: ${previewClient.host}`, `host: ${other}`, cookie],
      ['GET / HTTP/1.1', `host: ${other}`, `host: ${previewClient.host}`, cookie],
      [`GET http://${other}/ HTTP/1.1`, `host: ${previewClient.host}`, cookie],
      [`GET http://${previewClient.host}/ HTTP/1.1`, `host: ${other}`, cookie],
    ])
      assert.equal((await previewClient.raw(lines)).status, 400, lines.join(' | '));

    // A host name that the service ignores must stay ignored behind it.
    const forwarded = [`x-forwarded-host: ${other}`, `forwarded: host="${other}"`];
    const { status, body } = await previewClient.raw([
      'GET / HTTP/1.1',
      `host: ${previewClient.host}`,
      ...forwarded,
      cookie,
    ]);
    assert.deepEqual([status, body], [200, `the app at ${previewClient.host}`]);
  }
});

test('a link and its cookie are valid only for their own port and sandbox', async () => {
  for (const [sandboxId, port] of [
    [id, OTHER_PORT],
    [otherId, APP_PORT],
    [otherId, OTHER_PORT],
    [id, GUEST_PORT],
  ] as const) {
    const elsewhere = openPreviewClient(link, hostOf(link, sandboxId, port));
    assert.equal(codeOf(await elsewhere.byLink('/'), 403), 'preview_link_invalid');
    assert.equal(codeOf(await elsewhere.byLink('/', { cookie: previewClient.cookie }), 403), 'preview_link_invalid');
    const withCookie = await elsewhere.raw([
      'GET / HTTP/1.1',
      `host: ${elsewhere.host}`,
      `cookie: ${previewClient.cookie}`,
    ]);
    assert.equal(withCookie.status, 401, withCookie.body);
    assert.equal(await pageFor(elsewhere, 403), 'This link does not work');
  }
  assert.equal((await previewClient.ask('/')).body.toString(), `the app at ${previewClient.host}`);
});

test('a port without a listener is 502, and reaches its app as soon as it listens', async () => {
  const nobody = openPreviewClient((await publicLink(berth, id, NOBODY_PORT)).url);
  assert.equal(codeOf(await nobody.byLink('/'), 502), 'port_refused');
  assert.equal(await pageFor(nobody, 502), `Nothing listens on port ${NOBODY_PORT}`);
  await runInGuest(
    berth,
    id,
    `mkdir -p served && echo here > served/file &&
      { setsid python3 -m http.server -b 127.0.0.1 -d served ${NOBODY_PORT} </dev/null >/dev/null 2>&1 & } &&
      until curl -s -o /dev/null http://127.0.0.1:${NOBODY_PORT}/; do sleep 0.1; done`,
  );
  assert.equal((await nobody.byLink('/file')).body.toString(), 'here\n');
});

test('a revocation closes the connections of its link, and no others', async () => {
  const doomed = await publicLink(berth, id, APP_PORT);
  const guest = openPreviewClient(doomed.url);
  assert.equal((await guest.byLink('/')).status, 200);
  const open = await openConnection(guest);
  const beside = await openConnection(previewClient);

  assert.equal((await call(berth, 'DELETE', `/v1/sandboxes/${id}/previews/${doomed.id}`)).status, 200);
  await open.ends();
  assert.equal(codeOf(await guest.byLink('/'), 410), 'preview_link_revoked');
  assert.equal(codeOf(await guest.ask('/'), 410), 'preview_link_revoked');
  assert.equal(await pageFor(guest, 410), 'This link was revoked');

  assert.equal(beside.isOpen(), true);
  assert.equal((await previewClient.ask('/')).status, 200);
  beside.leave();
});

test('a sleeping sandbox shows a page about it, and its app after the wake', async () => {
  const open = await openConnection(previewClient);
  await sleepSandbox(berth, id);
  await open.ends();
  assert.equal(codeOf(await previewClient.ask('/'), 503), 'preview_sandbox_asleep');
  assert.equal(await pageFor(previewClient, 503), 'The sandbox is asleep');
  await wakeSandbox(berth, id);
  assert.equal((await previewClient.ask('/')).body.toString(), `the app at ${previewClient.host}`);
});

test('a destroyed sandbox invalidates its links and closes their connections', async () => {
  const gone = openPreviewClient((await publicLink(berth, otherId, APP_PORT)).url);
  assert.equal((await gone.byLink('/')).status, 200);
  const open = await openConnection(gone);
  await destroySandbox(berth, otherId);
  await open.ends();
  assert.equal(codeOf(await gone.byLink('/'), 404), 'preview_not_found');
  assert.equal(codeOf(await gone.ask('/'), 404), 'preview_not_found');
  assert.equal(await pageFor(gone, 404), 'This preview does not exist');
});

interface OpenConnection {
  /** Resolves when both are closed. */
  ends(): Promise<void>;
  isOpen(): boolean;
  leave(): void;
}

/** An event stream after its first event and a WebSocket after its first echo, both left open. */
async function openConnection(of: PreviewClient): Promise<OpenConnection> {
  const stream: IncomingMessage = await of.open('/events');
  stream.on('error', () => undefined);
  assert.equal(String(((await once(stream, 'data')) as [Buffer])[0]), 'id: 1\ndata: event 1\n\n');
  const opened = await of.webSocket('/');
  assert.ok('socket' in opened, JSON.stringify(opened));
  const { socket } = opened;
  socket.on('error', () => undefined);
  socket.resume();
  socket.send('there?');
  assert.equal(String(((await once(socket, 'message')) as [Buffer])[0]), 'there?');
  return {
    ends: async () => {
      await until('the stream of events is over', () => Promise.resolve(stream.closed ? true : null));
      await until('the WebSocket is over', () => Promise.resolve(socket.readyState === socket.CLOSED ? true : null));
    },
    isOpen: () => !stream.closed && socket.readyState === socket.OPEN,
    leave: () => {
      stream.destroy();
      socket.terminate();
    },
  };
}
