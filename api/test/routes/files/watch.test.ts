// Watches of folders over HTTP with a scripted guest: the API's part.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import type { FileCall } from '../../world/guests/exec-front.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';

const CURSOR = '0123456789abcdef.7';
const NOTHING = { changes: [], cursor: CURSOR, reset: false };
const LONG_AGO = new Date(Date.now() - 3_600_000);

let api: TestApi;
let sandboxId: string;
let calls: FileCall[];
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(async () => {
  sandboxId = (await api.makeSandbox('ready', { last_active_at: LONG_AGO })).id;
  calls = [];
  respond(NOTHING);
});

function respond(body: object | ((call: FileCall) => object | Promise<object>)): void {
  api.front.files = (call) => {
    calls.push(call);
    return typeof body === 'function' ? (body as (call: FileCall) => object)(call) : body;
  };
}

const watch = (query: Record<string, string> = {}, headers: Record<string, string> = {}): Promise<Answer> =>
  api.call('GET', `/v1/sandboxes/${sandboxId}/files/changes?${new URLSearchParams(query).toString()}`, { headers });

async function lastActive(): Promise<Date> {
  const row = await api.db
    .selectFrom('sandbox')
    .select('last_active_at')
    .where('id', '=', sandboxId)
    .executeTakeFirstOrThrow();
  return row.last_active_at;
}

test('a watch is begun for the absolute path and passes the changes on', async () => {
  const begun = await watch({ path: 'src/../lib/', recursive: 'true' });
  assert.deepEqual([begun.status, begun.body], [200, { path: '/code/lib', ...NOTHING }]);
  assert.deepEqual(calls[0]?.query, { path: '/code/lib', recursive: 'true' });
  const changes = [
    { path: '/code/lib', change: 'changed', kind: 'directory' },
    { path: '/code/lib/ü\n..', change: 'created', kind: 'link' },
    { path: '/code/lib/gone', change: 'removed' },
  ];
  respond({ changes, cursor: '0123456789abcdef.10', reset: false });
  const next = await watch({ path: 'lib', recursive: 'true', cursor: CURSOR }, { prefer: 'wait=9' });
  assert.deepEqual(next.body, { path: '/code/lib', changes, cursor: '0123456789abcdef.10', reset: false });
  assert.equal(next.headers.get('preference-applied'), 'wait=9');
  assert.deepEqual(calls[1]?.query, { path: '/code/lib', recursive: 'true', cursor: CURSOR, waitMs: '9000' });
});

test('to begin a watch is a use of the sandbox, to follow it is none', async () => {
  await watch({ cursor: CURSOR });
  assert.deepEqual(await lastActive(), LONG_AGO);
  await watch();
  assert.ok((await lastActive()) > LONG_AGO);
});

test('a watch of a stopped sandbox is 409 and wakes nothing', async () => {
  sandboxId = (await api.makeSandbox('stopped', { wakes_from: 'snapshot' })).id;
  for (const query of [{}, { cursor: CURSOR }] as Record<string, string>[]) {
    const { status, body } = await watch(query);
    assert.deepEqual([status, body.error.code], [409, 'sandbox_state_conflict']);
  }
  assert.deepEqual([calls.length, api.steps.length], [0, 0]);
});

test('a held request whose caller leaves ends in the guest too', async () => {
  const held = Promise.withResolvers<FileCall>();
  const over = Promise.withResolvers<void>();
  respond(async (call) => {
    held.resolve(call);
    call.gone.addEventListener('abort', () => over.resolve());
    await over.promise;
    return NOTHING;
  });
  const leaving = new AbortController();
  const url = `${api.url}/v1/sandboxes/${sandboxId}/files/changes?cursor=${CURSOR}`;
  const headers = { authorization: `Bearer ${api.token}`, prefer: 'wait=25' };
  const answer = fetch(url, { headers, signal: leaving.signal });
  await held.promise;
  leaving.abort();
  await assert.rejects(answer);
  await over.promise;
});

test('refusals of a watch name the limit, and an older sandbox is 409', async () => {
  const refuse = (code: 'watch_limit' | 'watch_too_large' | 'file_not_found'): void =>
    respond(() => {
      throw new ExecRefusal(code, 'words of a stranger');
    });
  for (const query of [{}, { cursor: CURSOR }] as Record<string, string>[]) {
    refuse('watch_limit');
    const limit = await watch(query);
    assert.deepEqual([limit.status, limit.body.error.code], [429, 'watch_limit']);
    assert.match(limit.body.error.message, /"\/code": cannot watch it: 8 folders/);
    assert.equal(limit.headers.get('retry-after'), '60');
    refuse('watch_too_large');
    const large = await watch(query);
    assert.deepEqual([large.status, large.body.error.code], [409, 'watch_too_large']);
    assert.match(large.body.error.message, /4096 folders/);
    refuse('file_not_found');
    assert.equal((await watch(query)).status, 404);
    respond(() => {
      throw new ExecRefusal('file_call_unsupported', 'the guest daemon lacks the file call');
    });
    const old = await watch(query);
    assert.deepEqual([old.status, old.body.error.code], [409, 'file_call_unsupported']);
  }
  for (const query of [
    { cursor: 'x' },
    { cursor: '' },
    { cursor: '0123456789abcdef.01' },
    { cursor: '0123456789ABCDEF.1' },
    { recursive: 'yes' },
    { path: '\0' },
  ] as Record<string, string>[]) {
    const { status, body } = await watch(query);
    assert.deepEqual([status, body.error.code], [400, 'invalid_request'], JSON.stringify(query));
  }
});

test('changes that violate the protocol are 503, and their text is not passed on', async () => {
  const change = { path: '/code/src/a', change: 'created', kind: 'file' };
  const body = { changes: [change], cursor: CURSOR, reset: false };
  respond(body);
  assert.equal((await watch({ path: 'src', cursor: CURSOR })).status, 200);
  for (const hostile of [
    { ...body, cursor: 'x' },
    { ...body, cursor: `${CURSOR}${'0'.repeat(20)}` },
    { ...body, reset: true },
    { ...body, more: 'x' },
    { ...body, changes: Array.from({ length: 1_001 }, () => change) },
    ...[
      { path: '/code/srcb' },
      { path: '/code' },
      { path: 'src/a' },
      { path: '/code/src/../../etc' },
      { path: '/code/src/./a' },
      { path: '/code/src//a' },
      { path: '/code/src/a/' },
      { path: '/code/src/\0' },
      { path: '/code/src/\ud800' },
      { path: `/code/src/${'x'.repeat(4_096)}` },
      { change: 'reset' },
      { kind: 'stranger' },
      { size: 1 },
    ].map((field) => ({ ...body, changes: [{ ...change, ...field }] })),
  ]) {
    respond(hostile);
    const answer = await watch({ path: 'src', cursor: CURSOR });
    assert.equal(answer.status, 503, JSON.stringify(hostile));
    assert.doesNotMatch(JSON.stringify(answer.body), /srcb|stranger/);
  }
});
