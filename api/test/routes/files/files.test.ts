// File calls over HTTP with a scripted host: the API's part of them.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, beforeEach, test } from 'node:test';
import { ERRORS } from '@berth/contract/route/errors.ts';
import { FILE_LIMITS } from '@berth/contract/route/limits.ts';
import { FILE_ERRORS, FILE_READ_BYTES, FILE_WRITE_BYTES, type FileErrorCode } from '@berth/protocol/files.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { type FileCall, type FileScript } from '../../world/guests/exec-front.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { deadlineOf } from '../../../../os/test/until.ts';

let api: TestApi;
let sandboxId: string;
let quiet: FileScript;
let calls: FileCall[];
before(async () => {
  api = await startApi({ durable: false });
  sandboxId = (await api.makeSandbox('ready')).id;
  quiet = api.front.files;
});
after(() => api.close());
beforeEach(() => {
  calls = [];
  answerWith(quiet);
});

const sha256Of = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

function answerWith(script: FileScript): void {
  api.front.files = (call) => {
    calls.push(call);
    return script(call);
  };
}

const get = (route: string, query: Record<string, string> = {}): Promise<Answer> =>
  api.call('GET', `/v1/sandboxes/${sandboxId}/${route}?${new URLSearchParams(query).toString()}`);
const put = (body: object): Promise<Answer> => api.call('PUT', `/v1/sandboxes/${sandboxId}/file`, { body });

test('a file is utf8 if valid UTF-8 without NUL, else base64, with its size in bytes', async () => {
  for (const [bytes, content, encoding] of [
    [Buffer.from('é\n'), 'é\n', 'utf8'],
    [Buffer.from(''), '', 'utf8'],
    [Buffer.from('\uFEFFx'), '\uFEFFx', 'utf8'],
    [Buffer.from('a\0b'), 'YQBi', 'base64'],
    [Buffer.from([0xff, 0xfe]), '//4=', 'base64'],
  ] as const) {
    answerWith(() => bytes);
    const answer = await get('file', { path: 'a' });
    assert.deepEqual(
      [answer.status, answer.body],
      [200, { path: '/code/a', content, encoding, size: bytes.length, sha256: sha256Of(bytes) }],
    );
  }
});

test('8 MiB of text arrive complete, however long their JSON is', async () => {
  const bytes = Buffer.alloc(FILE_READ_BYTES, 1);
  answerWith(() => bytes);
  const answer = await get('file', { path: 'a' });
  assert.equal(answer.body.encoding, 'utf8');
  assert.ok(Buffer.from(answer.body.content).equals(bytes));
});

test('relative paths are below /code, absolute paths are accepted, with any characters', async () => {
  for (const [given, path] of [
    ['a/b', '/code/a/b'],
    ['/etc/hosts', '/etc/hosts'],
    ['../x', '/x'],
    [' ü\n"\'&=?#%41+🦭', '/code/ ü\n"\'&=?#%41+🦭'],
  ] as const) {
    assert.equal((await get('file', { path: given })).body.path, path);
    assert.equal((await put({ path: given, content: '' })).body.path, path);
    assert.equal((await get('files', { path: given })).body.path, path);
    assert.equal((await get('files/snapshot', { path: given })).body.path, path);
    assert.deepEqual(
      calls.splice(0).map((call) => call.path),
      [path, path, path, path],
    );
  }
});

test('a listing defaults to /code and one level, a snapshot to three levels', async () => {
  answerWith(() => Buffer.from('D\0da\0fb\0EC'));
  const listing = await get('files');
  assert.deepEqual(listing.body, {
    path: '/code',
    truncated: false,
    entries: [
      { label: 'a', path: '/code/a', type: 'directory' },
      { label: 'b', path: '/code/b', type: 'file' },
    ],
  });
  answerWith(() => Buffer.from('D\0da\0D/a\0fx\0ET'));
  const snapshot = await get('files/snapshot', { path: '' });
  assert.deepEqual(snapshot.body, {
    path: '/code',
    truncated: true,
    directories: {
      '/code': [{ label: 'a', path: '/code/a', type: 'directory' }],
      '/code/a': [{ label: 'x', path: '/code/a/x', type: 'file' }],
    },
  });
  assert.deepEqual(
    calls.map(({ depth }) => depth),
    [1, 3],
  );
});

test('a snapshot depth is clamped to 1 to 5; only a non-integer is refused', async () => {
  for (const [given, depth] of [
    ['0', 1],
    ['-7', 1],
    ['1', 1],
    ['4', 4],
    ['5', 5],
    ['6', 5],
    ['99999999999999999999', 5],
    ['007', 5],
  ] as const) {
    assert.equal((await get('files/snapshot', { depth: given })).status, 200);
    assert.equal(calls.at(-1)?.depth, depth, given);
  }
  for (const given of ['', 'x', '1.5', '3 ', '1e1', '+2', '0x2']) {
    const answer = await get('files/snapshot', { depth: given });
    assert.deepEqual([answer.status, answer.body.error.code], [400, 'invalid_request'], given);
    assert.match(answer.body.error.message, /^query\.depth must be an integer/);
  }
});

test('a write forwards the bytes, decoded from utf8 by default or base64', async () => {
  for (const [body, bytes] of [
    [{ content: 'é\0\u0001' }, Buffer.from('é\0\u0001')],
    [{ content: 'é', encoding: 'utf8' }, Buffer.from('é')],
    [{ content: '//4=', encoding: 'base64' }, Buffer.from([0xff, 0xfe])],
    [{ content: '' }, Buffer.alloc(0)],
    [{ content: '', encoding: 'base64' }, Buffer.alloc(0)],
  ] as const) {
    const answer = await put({ path: 'f', ...body });
    assert.deepEqual(
      [answer.status, answer.body],
      [200, { path: '/code/f', size: bytes.length, sha256: sha256Of(bytes) }],
    );
    assert.deepEqual(calls.at(-1)?.body, bytes);
  }
});

test('a write over 2 MiB decoded is 413; exactly 2 MiB pass however they are escaped', async () => {
  const raw = (content: string, encoding: string): Promise<Answer> =>
    api.call('PUT', `/v1/sandboxes/${sandboxId}/file`, {
      rawBody: `{"path":"f","encoding":"${encoding}","content":"${content}"}`,
    });
  for (const [content, encoding] of [
    ['\\u0001'.repeat(FILE_WRITE_BYTES), 'utf8'],
    ['\\u00e9'.repeat(FILE_WRITE_BYTES / 2), 'utf8'],
    ['\\u0041'.repeat(Buffer.alloc(FILE_WRITE_BYTES).toString('base64').length - 1) + '=', 'base64'],
  ] as const) {
    const answer = await raw(content, encoding);
    assert.deepEqual([answer.status, answer.body.size], [200, FILE_WRITE_BYTES]);
  }
  assert.equal(calls.length, 3);
  for (const [content, encoding, code] of [
    ['x'.repeat(FILE_WRITE_BYTES + 1), 'utf8', 'file_too_large'],
    ['\\u0001'.repeat(FILE_WRITE_BYTES + 1), 'utf8', 'file_too_large'],
    [Buffer.alloc(FILE_WRITE_BYTES + 1).toString('base64'), 'base64', 'file_too_large'],
    ['x'.repeat(FILE_LIMITS.bodyBytes), 'utf8', 'payload_too_large'],
  ] as const) {
    const answer = await raw(content, encoding);
    assert.deepEqual([answer.status, answer.body.error.code], [413, code]);
  }
  assert.equal(calls.length, 3);
});

test('invalid input is 400 with the reason, and the VM is not called', async () => {
  for (const [body, code, message] of [
    [{ path: 'f' }, 'invalid_request', /body\.content is required/],
    [{ content: '' }, 'invalid_request', /body\.path is required/],
    [{ path: '', content: '' }, 'invalid_request', /body\.path must be at least 1 character/],
    [{ path: 'a\0', content: '' }, 'invalid_request', /body\.path must not contain NUL/],
    [{ path: '\ud800', content: '' }, 'invalid_request', /body\.path .*lone surrogates/],
    [{ path: 'f', content: '\udfff' }, 'invalid_request', /body\.content must not contain lone surrogates/],
    [{ path: 'f', content: 7 }, 'invalid_request', /body\.content must be a string/],
    [
      { path: 'f', content: '', encoding: 'latin1' },
      'invalid_request',
      /body\.encoding must be one of "utf8", "base64"/,
    ],
    [{ path: 'f', content: 'not base64!', encoding: 'base64' }, 'invalid_request', /body\.content is not base64/],
    [{ path: 'f', content: '', mode: 0o755 }, 'invalid_request', /body\.mode must be a string/],
    [{ path: 'f', content: '', owner: 'root' }, 'invalid_request', /body\.owner: unknown field/],
    [{ path: 'folder/', content: '' }, 'not_a_file', /is a directory; a file is required/],
    [{ path: `/${'a'.repeat(4_095)}`, content: '' }, 'file_path_invalid', /4096 bytes/],
    [{ path: 'a'.repeat(4_097), content: '' }, 'invalid_request', /at most 4096 characters/],
  ] as const) {
    const answer = await put(body);
    assert.deepEqual([answer.status, answer.body.error?.code], [400, code], JSON.stringify(body).slice(0, 80));
    assert.match(answer.body.error.message, message);
  }
  for (const [route, query] of [
    ['file', ''],
    ['file', 'path='],
    ['file', 'path=a&path=b'],
    ['file', 'path=%00'],
    ['file', 'path=a/'],
    ['files', 'path=%00'],
    ['files/snapshot', `path=${'a'.repeat(4_097)}`],
  ] as const) {
    assert.equal(
      (await api.call('GET', `/v1/sandboxes/${sandboxId}/${route}?${query}`)).status,
      400,
      `${route}?${query.slice(0, 40)}`,
    );
  }

  assert.equal(calls.length, 0);
});

test("each guest error is reported with the path in our words, never the guest's", async () => {
  const expected: { readonly [code in FileErrorCode]: keyof typeof ERRORS } = {
    file_path_invalid: 'file_path_invalid',
    not_a_file: 'not_a_file',
    not_a_directory: 'not_a_directory',
    file_access_denied: 'file_access_denied',
    file_not_found: 'file_not_found',
    file_too_large: 'file_too_large',
    guest_busy: 'sandbox_busy',
    file_system_error: 'file_system_error',
    guest_disk_full: 'guest_disk_full',
    file_changed: 'file_changed',
    file_exists: 'file_exists',
    folder_not_empty: 'folder_not_empty',
    watch_too_large: 'watch_too_large',
    watch_limit: 'watch_limit',
  };
  for (const code of Object.keys(FILE_ERRORS) as FileErrorCode[]) {
    answerWith(() => {
      throw new ExecRefusal(code, 'words of a stranger', code === 'file_system_error' ? 'ESTALE' : undefined);
    });
    const answer = await (code.startsWith('watch_')
      ? get('files/changes', { path: 'a"b' })
      : code === 'folder_not_empty'
        ? api.call('DELETE', `/v1/sandboxes/${sandboxId}/file?path=a%22b`)
        : ['guest_disk_full', 'file_changed', 'file_exists'].includes(code)
          ? put({ path: 'a"b', content: 'x' })
          : get('file', { path: 'a"b' }));
    assert.deepEqual([answer.status, answer.body.error.code], [ERRORS[expected[code]].status, expected[code]]);
    assert.doesNotMatch(answer.body.error.message, /stranger/);
    if (code === 'guest_busy') assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/);
    else assert.ok(answer.body.error.message.startsWith(String.raw`"/code/a\"b": `), answer.body.error.message);
    if (code === 'file_system_error') assert.match(answer.body.error.message, /ESTALE/);
  }
});

test('a silent VM is 503 sandbox_unreachable, a silent host 503 host_unavailable, with Retry-After', async () => {
  for (const [failure, code] of [
    ['guest_unreachable', 'sandbox_unreachable'],
    ['vm_not_running', 'sandbox_unreachable'],
    ['unauthorized', 'host_unavailable'],
  ] as const) {
    answerWith(() => {
      throw new ExecRefusal(failure, 'no');
    });
    for (const answer of [
      await get('file', { path: 'a' }),
      await get('files'),
      await get('files/snapshot'),
      await put({ path: 'a', content: '' }),
    ]) {
      assert.deepEqual([answer.status, answer.body.error.code], [503, code]);
      assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/);
    }
    assert.match((await put({ path: 'a', content: '' })).body.error.message, /may or may not have been written/);
  }
});

test('malformed listings, malformed write results and oversized files are not forwarded', async () => {
  answerWith(() => Buffer.from('D\0fa/b\0EC'));
  assert.equal((await get('files')).body.error.code, 'sandbox_unreachable');
  answerWith(() => ({ size: 'many' }));
  assert.equal((await put({ path: 'a', content: 'x' })).body.error.code, 'host_unavailable');
  answerWith(() => Buffer.alloc(FILE_READ_BYTES + 1));
  assert.equal((await get('file', { path: 'a' })).body.error.code, 'host_unavailable');
});

test('a successful write adds a feed row with path and size; reads and failed writes add none', async () => {
  const { id } = await api.makeSandbox('running');
  const path = `/v1/sandboxes/${id}/file`;
  await api.call('PUT', path, { body: { path: 'a/b', content: 'secret', encoding: 'utf8' } });
  await api.call('GET', `${path}?path=a/b`);
  await api.call('GET', `${path}s`);
  answerWith(() => {
    throw new ExecRefusal('guest_disk_full', '');
  });
  assert.equal((await api.call('PUT', path, { body: { path: 'c', content: 'x' } })).status, 409);
  const rows = await api.db.selectFrom('activity').selectAll().where('sandbox_id', '=', id).execute();
  assert.deepEqual(
    rows.map((row) => [row.kind, row.actor_kind, row.details]),
    [['sandbox_file_written', 'api_key', { path: '/code/a/b', size: 6 }]],
  );
});

test('a write whose caller disconnects is completed and recorded', async () => {
  const { id } = await api.makeSandbox('ready');
  const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  answerWith(async (call) => {
    begun.resolve();
    await go.promise;
    return quiet(call);
  });
  const caller = new AbortController();
  const left = api.call('PUT', `/v1/sandboxes/${id}/file`, {
    body: { path: 'f', content: 'x' },
    signal: caller.signal,
  });
  await begun.promise;
  caller.abort();
  await assert.rejects(left, { name: 'AbortError' });
  // The API has noticed the disconnect after these.
  for (let other = 0; other < 3; other += 1) assert.equal((await api.call('GET', `/v1/sandboxes/${id}`)).status, 200);
  go.resolve();
  const deadline = AbortSignal.timeout(deadlineOf(20_000));
  const noted = (): Promise<unknown[]> =>
    api.db.selectFrom('activity').select('id').where('sandbox_id', '=', id).execute();
  while ((await noted()).length === 0) deadline.throwIfAborted();
});

test('a viewer reads and cannot write; reading and writing have separate scopes', async () => {
  const path = `/v1/sandboxes/${sandboxId}/file`;
  const body = { path: 'a', content: '' };
  for (const [token, reads, writes] of [
    [(await api.makeSession({ role: 'viewer' })).token, 200, 403],
    [(await api.makeSession({ role: 'operator' })).token, 200, 200],
    [await api.makeKey({ scopes: ['sandbox.files.read'] }), 200, 403],
    [await api.makeKey({ scopes: ['sandbox.files.write'] }), 403, 200],
    [await api.makeKey({ role: 'viewer', scopes: ['sandbox.files.write'] }), 403, 403],
  ] as const) {
    const answers = [await api.call('GET', `${path}?path=a`, { token }), await api.call('PUT', path, { token, body })];
    assert.deepEqual(
      answers.map(({ status }) => status),
      [reads, writes],
    );
  }
});
