// File links over HTTP with a scripted host: terms, requests without a credential, and responses
// for browsers.
import assert from 'node:assert/strict';
import { after, before, beforeEach, mock, test } from 'node:test';
import type { Duplex } from 'node:stream';
import { FILE_LINK_SECONDS } from '@berth/contract/route/limits.ts';
import { PREVIEW_HEADERS } from '@berth/contract/previews/previews.ts';
import { startApi, type TestApi } from '../../world/api.ts';
import { partsOf } from '../../world/guests/exec-front.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { makeLink, tokenOf, use } from './link-world.ts';

let api: TestApi;
let sandboxId: string;
/** Streams that reached the host: path and query. */
let reached: string[] = [];
/** Content that the host stores. */
let stored = '';
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(async () => {
  reached = [];
  stored = '';
  api.front.stream = (_vmId, target) => {
    reached.push(target);
    return target.startsWith('file/part') ? partsOf('0123456789', 'a-1') : storing(target);
  };
  sandboxId = (await api.makeSandbox('ready', { last_active_at: new Date(Date.now() - 3_600_000) })).id;
});

const storing = (target: string) => (caller: Duplex) => {
  const bytes = Number(new URL(target, 'http://host').searchParams.get('bytes'));
  stored = '';
  const done = (): void => {
    if (Buffer.byteLength(stored) === bytes) caller.end(`{"size":${bytes}}\n`);
  };
  caller.on('data', (chunk: Buffer) => {
    stored += chunk.toString();
    done();
  });
  done();
};
const read = (more: object = {}) => makeLink(api, sandboxId, { path: 'a b.txt', action: 'read', ...more });
const write = (more: object = {}) => makeLink(api, sandboxId, { path: 'in/b', action: 'write', ...more });
const entries = async (kind?: string) => {
  const query = `?sandboxId=${sandboxId}${kind === undefined ? '' : `&kind=${kind}`}`;
  return (await api.call('GET', `/v1/orgs/${api.orgId}/activity${query}`)).body.activity;
};

test('a link that reads sends the file without a credential, by ranges and to HEAD too', async () => {
  const link = await read();
  assert.deepEqual([link.method, link.path, link.action], ['GET', '/code/a b.txt', 'read']);
  const whole = await use(link);
  assert.deepEqual([whole.status, whole.text], [200, '0123456789']);
  const part = await use(link, { headers: { range: 'bytes=2-4', 'if-range': '"a-1"' } });
  assert.deepEqual([part.status, part.text, part.headers.get('content-range')], [206, '234', 'bytes 2-4/10']);
  const behind = await use(link, { headers: { range: 'bytes=10-' } });
  assert.deepEqual([behind.status, behind.headers.get('content-range')], [416, 'bytes */10']);
  const head = await use(link, { method: 'HEAD' });
  assert.deepEqual([head.status, head.text, head.headers.get('content-length')], [200, '', '10']);
  assert.deepEqual(new Set(reached), new Set(['file/part?path=%2Fcode%2Fa+b.txt']));
  assert.deepEqual(await entries('sandbox_file_written'), []);
  const { sandbox } = (await api.call('GET', `/v1/sandboxes/${sandboxId}`)).body;
  assert.equal(sandbox.lastActiveBy, 'file');
});

test('a link that writes stores a body of any type, and the feed names the link', async () => {
  const link = await write();
  const answer = await use(link, { body: 'content', headers: { 'content-type': 'image/png' } });
  const { sha256, ...file } = JSON.parse(answer.text);
  assert.deepEqual([answer.status, file, stored], [200, { path: '/code/in/b', size: 7 }, 'content']);
  assert.match(sha256, /^[0-9a-f]{64}$/);
  assert.equal((await use(link, { body: new Uint8Array() })).status, 200);
  const [, written, created] = await entries();
  const actor = { kind: 'file_link', id: link.id, userId: api.userId };
  assert.deepEqual(
    [written.kind, written.actor, written.details],
    ['sandbox_file_written', actor, { path: '/code/in/b', size: 7 }],
  );
  assert.equal(written.requestId, answer.headers.get('x-request-id'));
  const { expiresAt, path, id: linkId } = link;
  assert.deepEqual(
    [created.kind, created.actor.kind, created.details],
    ['sandbox_file_link_created', 'api_key', { linkId, action: 'write', path, expiresAt }],
  );
});

test('a link lasts 15 minutes by default, and expires at its time', async () => {
  const now = Date.now();
  const links = [await read(), await read({ expiresInSeconds: 60 }), await write({ expiresInSeconds: 86_400 })];
  for (const [index, seconds] of [FILE_LINK_SECONDS.default, 60, 86_400].entries()) {
    const link = links[index];
    assert.ok(link !== undefined);
    const lasts = Date.parse(link.expiresAt) - now;
    assert.ok(lasts >= seconds * 1_000 && lasts < seconds * 1_000 + 60_000, link.expiresAt);
    for (const [atMs, status] of [
      [Date.parse(link.expiresAt) - 1, 200],
      [Date.parse(link.expiresAt), 410],
    ] as const) {
      mock.timers.enable({ apis: ['Date'], now: atMs });
      try {
        const answer = await use(link, link.method === 'PUT' ? { body: '' } : {});
        assert.equal(answer.status, status, answer.text);
        if (status === 410) assert.match(answer.message ?? '', new RegExp(`expired at ${link.expiresAt}`));
      } finally {
        mock.timers.reset();
      }
    }
  }
});

test('a link refuses the method of the other action, names its own, and reaches no host', async () => {
  const [reads, writes] = [await read(), await write()];
  for (const [link, method, allow] of [
    [reads, 'PUT', 'GET, HEAD'],
    [writes, 'GET', 'PUT'],
    [writes, 'HEAD', 'PUT'],
    [reads, 'DELETE', 'GET, HEAD, OPTIONS, PUT'],
    [writes, 'POST', 'GET, HEAD, OPTIONS, PUT'],
  ] as const) {
    const answer = await use({ ...link, method }, method === 'PUT' ? { body: 'x' } : {});
    assert.deepEqual([answer.status, answer.headers.get('allow')], [405, allow], method);
    if (method !== 'HEAD') assert.equal(answer.code, 'method_not_allowed');
  }
  assert.deepEqual(reached, []);
});

test('maxBytes refuses a longer body by its length, before the host, and a body without one', async () => {
  const link = await write({ maxBytes: 5 });
  const long = await use(link, { body: '123456' });
  assert.deepEqual([long.status, long.code], [413, 'file_too_large']);
  assert.match(long.message ?? '', /^cannot upload 6 bytes: the limit of this file link is 5 bytes\. /);
  const chunked = await use(link, { body: new Blob(['1']).stream(), duplex: 'half' });
  assert.deepEqual([chunked.status, chunked.code], [400, 'invalid_request']);
  assert.deepEqual(reached, []);
  assert.equal((await use(link, { body: '12345' })).status, 200);
  const none = await write({ maxBytes: 0 });
  assert.deepEqual([(await use(none, { body: '1' })).status, (await use(none, { body: '' })).status], [413, 200]);
});

test('overwrite false passes the condition to the host; by default there is none', async () => {
  for (const [more, condition] of [
    [{}, null],
    [{ overwrite: true }, null],
    [{ overwrite: false }, 'absent'],
  ] as const) {
    reached = [];
    await use(await write(more), { body: '' });
    const [target = ''] = reached;
    const query = new URL(target, 'http://host').searchParams;
    assert.deepEqual([query.get('path'), query.get('ifUnchanged'), query.get('mode')], ['/code/in/b', condition, null]);
  }
});

test('terms of the other action, bad names, times and paths are refused, and name the field', async () => {
  const path = `/v1/sandboxes/${sandboxId}/files/links`;
  for (const [body, code, words] of [
    [{ path: 'a', action: 'read', maxBytes: 1 }, 'invalid_request', /maxBytes is allowed only with the action write/],
    [{ path: 'a', action: 'read', overwrite: true }, 'invalid_request', /overwrite is allowed only with/],
    [{ path: 'a', action: 'write', fileName: 'b' }, 'invalid_request', /fileName is allowed only with the action read/],
    [{ path: 'a', action: 'delete' }, 'invalid_request', /body\.action/],
    [{ path: 'a' }, 'invalid_request', /body\.action/],
    [{ action: 'read' }, 'invalid_request', /body\.path/],
    [{ path: 'a', action: 'read', expiresInSeconds: 59 }, 'invalid_request', /expiresInSeconds.*60/],
    [{ path: 'a', action: 'read', expiresInSeconds: 86_401 }, 'invalid_request', /expiresInSeconds.*86400/],
    [{ path: 'a', action: 'write', maxBytes: -1 }, 'invalid_request', /maxBytes/],
    [{ path: 'a', action: 'write', maxBytes: 0.5 }, 'invalid_request', /maxBytes/],
    ...['', 'a/b', 'a\\b', 'a\nb', 'a\0', 'x'.repeat(256)].map(
      (fileName) => [{ path: 'a', action: 'read', fileName }, 'invalid_request', /fileName/] as const,
    ),
    [{ path: 'a\0b', action: 'read' }, 'invalid_request', /body\.path/],
    [{ path: 'a/', action: 'read' }, 'not_a_file', /ends in a slash/],
    [{ path: 'a/..', action: 'write' }, 'not_a_file', /a file is required/],
    [{ path: 'é'.repeat(4_000), action: 'write' }, 'file_path_invalid', /4095 bytes/],
  ] as const) {
    const answer = await api.call('POST', path, { body });
    assert.equal(answer.body.error.code, code, JSON.stringify(body).slice(0, 80));
    assert.match(answer.body.error.message, words);
  }
});

test('the longest path and name make a link that works, and `..` stays above the root', async () => {
  const path = `/${'\u{1}'.repeat(4_093)}x`;
  const link = await makeLink(api, sandboxId, { path, action: 'read', fileName: '\u{fffd}'.repeat(255) });
  assert.ok(link.url.length < 8_000, String(link.url.length));
  assert.equal((await use(link)).status, 200);
  const out = await makeLink(api, sandboxId, { path: '../../../etc/./x/../passwd', action: 'read' });
  assert.equal(out.path, '/etc/passwd');
});

test('a response is a download that no browser runs, shows or caches as a page of this origin', async () => {
  const expected = {
    'content-type': 'application/octet-stream',
    'content-disposition': 'attachment; filename="a b.txt"',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "sandbox; default-src 'none'",
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    'cross-origin-resource-policy': 'cross-origin',
    'access-control-allow-origin': '*',
    'access-control-allow-credentials': null,
    'set-cookie': null,
  };
  const link = await read();
  for (const init of [{}, { headers: { range: 'bytes=0-0' } }, { method: 'HEAD' }]) {
    const { headers } = await use(link, init);
    for (const [name, value] of Object.entries(expected)) assert.equal(headers.get(name), value, name);
  }
  const named = await use(await read({ fileName: 'Übersicht "1".html' }));
  assert.equal(
    named.headers.get('content-disposition'),
    `attachment; filename="_bersicht _1_.html"; filename*=UTF-8''%C3%9Cbersicht%20%221%22.html`,
  );
  const failed = await use({ url: `${api.url}/file-links/x` });
  for (const name of ['content-security-policy', 'access-control-allow-origin', 'x-content-type-options'] as const)
    assert.equal(failed.headers.get(name), expected[name], name);
});

test('pages of any origin may read, upload and see progress, without credentials', async () => {
  const link = await write();
  const origin = 'https://app.example.test';
  const preflight = await use(link, {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'PUT', 'access-control-request-headers': 'content-type' },
  });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get('access-control-allow-origin'), '*');
  assert.match(preflight.headers.get('access-control-allow-methods') ?? '', /\bPUT\b/);
  const granted = (preflight.headers.get('access-control-allow-headers') ?? '').toLowerCase().split(', ');
  assert.deepEqual(granted, ['content-type', 'if-range', 'range']);
  for (const name of Object.values(PREVIEW_HEADERS)) assert.ok(!granted.includes(name), 'opens no preview');
  const exposed = (await use(await read(), { headers: { origin } })).headers.get('access-control-expose-headers') ?? '';
  for (const name of ['Content-Length', 'Content-Range', 'ETag', 'Content-Disposition'])
    assert.ok(exposed.split(', ').includes(name), name);
  // No other path grants anything.
  for (const path of ['/v1/me', '/file-links', `/v1/sandboxes/${sandboxId}/files/links`]) {
    const { headers } = await fetch(api.url + path, { method: 'OPTIONS', headers: { origin } });
    assert.equal(headers.get('access-control-allow-origin'), null, path);
  }
});

test('a credential or cookie that comes with a link changes nothing, valid or not', async () => {
  const link = await write();
  const { token: foreign } = await api.makeOrg();
  for (const authorization of ['Bearer x', 'Basic eDp5', `Bearer ${foreign}`, `Bearer ${api.token}`]) {
    const answer = await use(link, { body: '', headers: { authorization, cookie: 'berth_session=x' } });
    assert.deepEqual([answer.status, answer.headers.get('ratelimit')], [200, null], authorization.slice(0, 8));
    const forged = await use({ url: `${api.url}/file-links/x` }, { headers: { authorization } });
    assert.deepEqual([forged.status, forged.code], [403, 'file_link_invalid']);
  }
  assert.deepEqual(
    (await entries('sandbox_file_written')).map((entry: { actor: { id: string } }) => entry.actor.id),
    [link.id, link.id, link.id, link.id],
  );
});

test('errors of the guest are about the path alone, and those of the sandbox name nothing', async () => {
  const link = await read();
  for (const [refusal, status, code, words] of [
    ['file_not_found', 404, 'file_not_found', /^"\/code\/a b\.txt": no such file/],
    ['not_a_file', 400, 'not_a_file', /^"\/code\/a b\.txt": this is a directory/],
    ['file_access_denied', 403, 'file_access_denied', /^"\/code\/a b\.txt"/],
    ['guest_busy', 429, 'sandbox_busy', /./],
    ['too_many_streams', 429, 'too_many_connections', /^too many requests or transfers; retry in a moment$/],
    ['guest_unreachable', 503, 'file_link_unavailable', /^the sandbox of this file link is not running/],
    ['vm_not_running', 503, 'file_link_unavailable', /^the sandbox of this file link is not running/],
  ] as const) {
    api.front.stream = () => {
      throw new ExecRefusal(refusal, 'secrets of the host');
    };
    const answer = await use(link);
    assert.deepEqual([answer.status, answer.code], [status, code]);
    assert.match(answer.message ?? '', words);
    assert.ok(!answer.text.includes('secrets of the host') && !answer.text.includes(sandboxId), answer.text);
  }
  for (const status of ['stopped', 'provisioning', 'failed'] as const) {
    const { id } = await api.makeSandbox(status);
    const asleep = await use(await makeLink(api, id, { path: 'a', action: 'read' }));
    assert.deepEqual([asleep.status, asleep.code], [503, 'file_link_unavailable'], status);
    assert.ok(!asleep.text.includes(status), asleep.text);
  }
});

test('a log line of a use has the link, the org and the real error code, and never the token', async () => {
  const { id } = await api.makeSandbox('stopped');
  const link = await makeLink(api, id, { path: 'a', action: 'read' });
  await use(link);
  const forged = `${tokenOf(link).slice(0, -8)}AAAAAAAA`;
  await use({ url: `${api.url}/file-links/${forged}` });
  await use({ url: `${api.url}/file-links/${forged}`, method: 'DELETE' });
  const lines = api
    .logged()
    .split('\n')
    .filter((line) => line.includes('/file-links/:token'))
    .map((line) => JSON.parse(line));
  const line = lines.find(({ caller }) => caller === link.id);
  assert.deepEqual(
    [line.callerKind, line.org, line.code, line.status],
    ['file_link', api.orgId, 'sandbox_state_conflict', 503],
  );
  assert.ok(!api.logged().includes(forged), 'a forged token is in the log');
  await api.scanSecrets();
});
