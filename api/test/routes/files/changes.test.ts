// Deletes, moves, folders, conditions and transfers over HTTP with a scripted host.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { Duplex } from 'node:stream';
import { after, before, beforeEach, test } from 'node:test';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { type FileCall, type FileScript } from '../../world/guests/exec-front.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';

let api: TestApi;
let sandboxId: string;
let defaults: { files: FileScript; stream: TestApi['front']['stream'] };
let calls: FileCall[];
before(async () => {
  api = await startApi({ durable: false });
  const { files, stream } = api.front;
  defaults = { files, stream };
});
after(() => api.close());
beforeEach(async () => {
  calls = [];
  Object.assign(api.front, defaults);
  api.front.files = (call) => {
    calls.push(call);
    return defaults.files(call);
  };
  sandboxId = (await api.makeSandbox('ready')).id;
});

const at = (route: string): string => `/v1/sandboxes/${sandboxId}/${route}`;
const sha256 = (content: string): string => createHash('sha256').update(content).digest('hex');

async function feed(): Promise<[string, unknown][]> {
  const rows = await api.db
    .selectFrom('activity')
    .select(['kind', 'details'])
    .where('sandbox_id', '=', sandboxId)
    .execute();
  return rows.map(({ kind, details }): [string, unknown] => [kind, details]);
}

test('changes pass absolute paths and flags to the host, and leave a row each', async () => {
  const answers = [
    await api.call('DELETE', at('file?path=a/../b')),
    await api.call('DELETE', at('file?path=/x/y/&recursive=true')),
    await api.call('POST', at('files/move'), { body: { from: 'a', to: '/b' } }),
    await api.call('POST', at('files/move'), { body: { from: 'a', to: 'b/', replace: true } }),
    await api.call('POST', at('files/folder'), { body: { path: 'n/m' } }),
  ];
  assert.deepEqual(
    answers.map(({ status, body }) => [status, body]),
    [
      [200, { path: '/code/b' }],
      [200, { path: '/x/y' }],
      [200, { from: '/code/a', to: '/b' }],
      [200, { from: '/code/a', to: '/code/b' }],
      [201, { path: '/code/n/m' }],
    ],
  );
  assert.deepEqual(
    calls.map(({ verb, query }) => [verb, query]),
    [
      ['remove', { path: '/code/b' }],
      ['remove', { path: '/x/y', recursive: 'true' }],
      ['move', { path: '/code/a', to: '/b' }],
      ['move', { path: '/code/a', to: '/code/b', replace: 'true' }],
      ['folder', { path: '/code/n/m' }],
    ],
  );
  assert.deepEqual(
    new Set(await feed()),
    new Set<[string, unknown]>([
      ['sandbox_file_deleted', { path: '/code/b' }],
      ['sandbox_file_deleted', { path: '/x/y' }],
      ['sandbox_file_moved', { from: '/code/a', to: '/b' }],
      ['sandbox_file_moved', { from: '/code/a', to: '/code/b' }],
      ['sandbox_folder_created', { path: '/code/n/m' }],
    ]),
  );
});

test('a change of the root, of the current folder or of its parent is refused before the host', async () => {
  for (const path of ['/', '//', '.', '..', 'a/..', './']) {
    assert.equal(
      (await api.call('DELETE', at(`file?path=${path}&recursive=true`))).body.error.code,
      'not_a_file',
      path,
    );
  }
  assert.equal((await api.call('DELETE', at('file?path=a&recursive=yes'))).body.error.code, 'invalid_request');
  assert.deepEqual(calls, []);
});

test('a failed change leaves no row, and names both paths of a move', async () => {
  api.front.files = () => {
    throw new ExecRefusal('file_exists', 'words of a stranger');
  };
  const answer = await api.call('POST', at('files/move'), { body: { from: 'a', to: 'b' } });
  assert.deepEqual([answer.status, answer.body.error.code], [409, 'file_exists']);
  assert.equal(answer.body.error.message, '"/code/a" to "/code/b": a file or folder has this path already');
  assert.deepEqual(await feed(), []);
});

test('a condition is passed on; another form of it is refused', async () => {
  const body = { path: 'f', content: 'new', ifUnchanged: sha256('old') };
  const answer = await api.call('PUT', at('file'), { body });
  assert.deepEqual([answer.status, answer.body.sha256], [200, sha256('new')]);
  assert.equal(calls.at(-1)?.query['ifUnchanged'], sha256('old'));
  for (const ifUnchanged of ['', 'x', sha256('old').toUpperCase(), null])
    assert.equal((await api.call('PUT', at('file'), { body: { ...body, ifUnchanged } })).status, 400);
});

test('an upload streams its bytes to the host and returns their hash', async () => {
  const content = 'y'.repeat(5_000_000);
  const answer = await api.call('PUT', at('file/content?path=big'), { rawBody: content });
  const { path, size } = answer.body as { path: string; size: number };
  assert.deepEqual([path, size, answer.body.sha256], ['/code/big', 5_000_000, sha256(content)]);
  assert.deepEqual(await feed(), [['sandbox_file_written', { path: '/code/big', size: 5_000_000 }]]);
  const empty = await api.call('PUT', at('file/content?path=empty'), { rawBody: new Uint8Array(0) });
  assert.deepEqual([empty.status, empty.body.size], [200, 0]);
});

test('an upload without its type, with a chunked body or a bad path does not reach the host', async () => {
  let opened = 0;
  api.front.stream = () => {
    opened += 1;
    return () => undefined;
  };
  const json = { 'content-type': 'application/json' };
  for (const [path, options, code] of [
    ['file/content?path=a', { rawBody: 'x', headers: json }, 'unsupported_media_type'],
    ['file/content?path=a/', { rawBody: 'x' }, 'not_a_file'],
    ['file/content', { rawBody: 'x' }, 'invalid_request'],
  ] as const)
    assert.equal((await api.call('PUT', at(path), options)).body.error.code, code);
  const chunked = await rawUpload('chunk', {});
  assert.deepEqual([chunked.status, chunked.code], [400, 'invalid_request']);
  assert.equal(opened, 0);
});

/** Sends the bytes; `length` may promise more. */
async function rawUpload(content: string, headers: Record<string, string>): Promise<{ status: number; code: string }> {
  const sent = http.request(`${api.url}${at('file/content?path=a')}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${api.token}`, 'content-type': 'application/octet-stream', ...headers },
  });
  sent.write(content);
  if (headers['content-length'] === undefined) sent.end();
  const [response] = (await once(sent, 'response')) as [http.IncomingMessage];
  const text = Buffer.concat((await response.toArray()) as Buffer[]).toString();
  sent.destroy();
  return { status: response.statusCode ?? 0, code: (JSON.parse(text) as { error: { code: string } }).error.code };
}

test('a refusal ends an upload that is still being sent, and leaves no row', async () => {
  api.front.stream = () => (caller) =>
    void caller.once('data', () => caller.end('{"error":{"code":"guest_disk_full"}}\n'));
  assert.deepEqual(await rawUpload('part', { 'content-length': '1000' }), { status: 409, code: 'guest_disk_full' });
  assert.deepEqual(await feed(), []);
});

test('a hostile outcome of an upload is 503, never a success', async () => {
  for (const line of [
    '{"size":3}\n',
    '{"size":4,"x":1}\n',
    'x'.repeat(10_000),
    '\n',
    '{"error":{"code":"internal"}}\n',
  ]) {
    api.front.stream = () => (caller) => void caller.once('data', () => caller.end(line));
    const answer = await api.call('PUT', at('file/content?path=a'), { rawBody: 'four' });
    assert.deepEqual([answer.status, answer.body.error.code], [503, 'sandbox_unreachable'], line.slice(0, 40));
    assert.match(answer.body.error.message, /may or may not have been written/);
  }
  assert.deepEqual(await feed(), []);
});

test('a caller that leaves an upload closes the stream of the host', async () => {
  const gone = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  api.front.stream = () => (caller) => {
    caller.once('data', () => begun.resolve());
    caller.once('end', () => gone.resolve());
  };
  const sent = http.request(`${api.url}${at('file/content?path=a')}`, {
    method: 'PUT',
    headers: {
      authorization: `Bearer ${api.token}`,
      'content-type': 'application/octet-stream',
      'content-length': '1000',
    },
  });
  sent.on('error', () => undefined);
  sent.write('part');
  await begun.promise;
  sent.destroy();
  await gone.promise;
  assert.deepEqual(await feed(), []);
});

test('a download has its length, is never shown as a page, and adds no row', async () => {
  const answer = await api.call('GET', at('file/content?path=a'));
  assert.equal(answer.body, 'a content');
  assert.deepEqual(
    ['content-type', 'content-length', 'content-disposition', 'x-content-type-options'].map((name) =>
      answer.headers.get(name),
    ),
    ['application/octet-stream', '9', 'attachment', 'nosniff'],
  );
  const head = await api.call('HEAD', at('file/content?path=a'));
  assert.deepEqual([head.status, head.headers.get('content-length')], [200, '9']);
  assert.deepEqual(await feed(), []);
});

test('a download that breaks off fails at its reader; one without a length is 503', async () => {
  const respond = (send: (caller: Duplex) => void): void => {
    api.front.stream = () => (caller) => send(caller);
  };
  respond((caller) => void caller.end('100\nshort'));
  await assert.rejects(api.call('GET', at('file/content?path=a')));
  for (const line of ['x'.repeat(5_000), '-1\n', '1e3\n', '99999999999999999999\n', '']) {
    respond((caller) => void caller.end(line));
    const answer: Answer = await api.call('GET', at('file/content?path=a'));
    assert.deepEqual([answer.status, answer.body.error.code], [503, 'sandbox_unreachable'], line.slice(0, 20));
  }
  respond((caller) => void caller.end('3\nlonger'));
  assert.equal((await api.call('GET', at('file/content?path=a'))).status, 200);
});

test('a download ends when the sandbox is put to sleep', async () => {
  api.front.stream = () => (caller) => void caller.write('100\npart');
  const { body } = await fetch(`${api.url}${at('file/content?path=a')}`, {
    headers: { authorization: `Bearer ${api.token}` },
  });
  const reader = body?.getReader();
  assert.equal(new TextDecoder().decode((await reader?.read())?.value), 'part');
  await api.call('POST', at('sleep'), { headers: { prefer: 'respond-async' } });
  await assert.rejects(async () => {
    while ((await reader?.read())?.done === false);
  });
});

test('changes and uploads need the write permission, a download the read permission', async () => {
  const writes = await api.makeKey({ scopes: ['sandbox.files.write'] });
  const reads = await api.makeKey({ scopes: ['sandbox.files.read'] });
  for (const [token, changes, downloads] of [
    [writes, 200, 403],
    [reads, 403, 200],
  ] as const) {
    const answers = [
      await api.call('DELETE', at('file?path=a'), { token }),
      await api.call('POST', at('files/move'), { token, body: { from: 'a', to: 'b' } }),
      await api.call('PUT', at('file/content?path=a'), { token, rawBody: 'x' }),
      await api.call('GET', at('file/content?path=a'), { token }),
    ];
    assert.deepEqual(
      answers.map(({ status }) => status),
      [changes, changes, changes, downloads],
    );
  }
});
