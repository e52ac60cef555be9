// Ranges of a download over HTTP with a scripted host.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { untilTrue } from '../../../../os/test/until.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { partsOf } from '../../world/guests/exec-front.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';

const CONTENT = '0123456789';

let api: TestApi;
let sandboxId: string;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(async () => {
  api.front.stream = () => partsOf(CONTENT, 'a-1');
  sandboxId = (await api.makeSandbox('ready')).id;
});

const at = (): string => `/v1/sandboxes/${sandboxId}/file/content?path=a`;
const get = (headers: Record<string, string>, method: 'GET' | 'HEAD' = 'GET'): Promise<Answer> =>
  api.call(method, at(), { headers });
const headersOf = ({ headers }: Answer): (string | null)[] =>
  ['content-range', 'content-length', 'etag', 'accept-ranges'].map((name) => headers.get(name));

test('one range of bytes is 206 with its place, and the whole content has its ETag', async () => {
  const whole = await get({});
  assert.deepEqual([whole.status, whole.body, headersOf(whole)], [200, CONTENT, [null, '10', '"a-1"', 'bytes']]);
  for (const [range, expected, place] of [
    ['bytes=0-0', '0', '0-0'],
    ['bytes=2-4', '234', '2-4'],
    ['bytes=7-', '789', '7-9'],
    ['bytes=7-99999999999999999999', '789', '7-9'],
    ['bytes=0-', CONTENT, '0-9'],
    ['bytes=-1', '9', '9-9'],
    ['bytes=-99', CONTENT, '0-9'],
    ['Bytes= 1-2 ', '12', '1-2'],
  ] as const) {
    const answer = await get({ range });
    const headers = [`bytes ${place}/10`, String(expected.length), '"a-1"', 'bytes'];
    assert.deepEqual([answer.status, String(answer.body), headersOf(answer)], [206, expected, headers], range);
  }
});

test('several ranges, other units and malformed ones are ignored', async () => {
  for (const range of [
    'bytes=0-1,3-4',
    'lines=0-1',
    'bytes=',
    'bytes=-',
    'bytes=4-2',
    'bytes=a-b',
    'bytes=0x1-',
    '0-1',
  ]) {
    const answer = await get({ range });
    assert.deepEqual([answer.status, answer.body, answer.headers.get('content-range')], [200, CONTENT, null], range);
  }
  const head = await get({ range: 'bytes=2-4' }, 'HEAD');
  assert.deepEqual([head.status, headersOf(head)], [200, [null, '10', '"a-1"', 'bytes']]);
});

test('a range behind the end is 416 with the size; a range of an empty file is its whole content', async () => {
  for (const range of ['bytes=10-', 'bytes=10-20', 'bytes=99999999999999999999-', 'bytes=-0']) {
    const answer = await get({ range });
    assert.deepEqual([answer.status, answer.body.error.code], [416, 'range_not_satisfiable'], range);
    assert.equal(answer.headers.get('content-range'), 'bytes */10');
    assert.match(answer.body.error.message, /"\/code\/a".* at 10 bytes$/);
  }
  api.front.stream = () => partsOf('', 'e-0');
  for (const range of ['bytes=0-', 'bytes=5-', 'bytes=-5']) {
    const answer = await get({ range });
    assert.deepEqual([answer.status, headersOf(answer)], [200, [null, '0', '"e-0"', 'bytes']], range);
  }
});

test('If-Range sends the whole content unless the file is the same', async () => {
  for (const [ifRange, status] of [
    ['"a-1"', 206],
    ['"a-2"', 200],
    ['W/"a-1"', 200],
    ['a-1', 200],
    ['Sat, 29 Nov 2025 00:00:00 GMT', 200],
  ] as const) {
    const answer = await get({ range: 'bytes=8-', 'if-range': ifRange });
    assert.deepEqual([answer.status, String(answer.body)], [status, status === 206 ? '89' : CONTENT], ifRange);
  }
  api.front.stream = () => partsOf('short', 'a-2');
  const changed = await get({ range: 'bytes=8-', 'if-range': '"a-1"' });
  assert.deepEqual([changed.status, changed.body, changed.headers.get('etag')], [200, 'short', '"a-2"']);
});

test('a generated file, and any file of a sandbox of an earlier release, is sent whole', async () => {
  const targets: string[] = [];
  api.front.stream = () => partsOf(CONTENT, '-');
  const generated = await get({ range: 'bytes=2-4' });
  assert.deepEqual([generated.status, generated.body, headersOf(generated)], [200, CONTENT, [null, '10', null, null]]);
  api.front.stream = (_vmId, target) => {
    targets.push(target);
    if (target.startsWith('file/part')) throw new ExecRefusal('file_call_unsupported', 'no');
    return (caller) => void caller.end(`10\n${CONTENT}`);
  };
  const earlier = await get({ range: 'bytes=2-4' });
  assert.deepEqual([earlier.status, earlier.body, headersOf(earlier)], [200, CONTENT, [null, '10', null, null]]);
  assert.deepEqual(targets, ['file/part?path=%2Fcode%2Fa', 'file/stream?path=%2Fcode%2Fa']);
});

test('an offer of a hostile guest is 503, and a part that is not the requested one breaks off', async () => {
  for (const line of [
    '10\tx',
    '10  a',
    '10 "a"',
    '10 a b',
    '10 a\r',
    '-1 a',
    '99999999999999999999 a',
    `1 ${'a'.repeat(300)}`,
  ]) {
    api.front.stream = () => (caller) => void caller.end(`${line}\n${CONTENT}`);
    const answer = await get({ range: 'bytes=2-4' });
    assert.deepEqual([answer.status, answer.body.error.code], [503, 'sandbox_unreachable'], line.slice(0, 40));
  }
  for (const content of ['2', CONTENT]) {
    api.front.stream = () => (caller) => {
      caller.write('10 a-1\n');
      caller.once('data', () => caller.end(content));
    };
    if (content.length < 3) await assert.rejects(get({ range: 'bytes=2-4' }));
    else assert.equal((await get({ range: 'bytes=2-4' })).headers.get('content-length'), '3');
  }
});

test('a download that breaks before its first byte is 503', async () => {
  for (const size of [1, 1_000_000]) {
    api.front.stream = () => (caller) => {
      caller.write(`${size} a-1\n`);
      caller.once('data', () => caller.end());
    };
    const answer = await get({});
    assert.deepEqual([answer.status, answer.body.error.code], [503, 'sandbox_unreachable']);
  }
});

test('a refused range, and a caller that wants the head alone, close the stream of the host', async () => {
  for (const [method, range] of [
    ['GET', 'bytes=10-'],
    ['HEAD', 'bytes=0-'],
  ] as const) {
    const closed = Promise.withResolvers<void>();
    api.front.stream = () => (caller) => {
      partsOf(CONTENT, 'a-1')(caller);
      caller.resume().once('end', () => closed.resolve());
      caller.once('close', () => closed.resolve());
    };
    await get({ range }, method);
    await closed.promise;
  }
});

test('a download whose caller leaves is a broken response in the log, and no error', async () => {
  api.front.stream = () => (caller) => {
    caller.on('error', () => undefined).write('1000000 a-1\n');
    caller.once('data', () => caller.write('begin'));
  };
  const seen = api.logged().length;
  const leaving = new AbortController();
  const headers = { authorization: `Bearer ${api.token}` };
  assert.equal((await fetch(api.url + at(), { headers, signal: leaving.signal })).status, 200);
  leaving.abort();
  await untilTrue('it is in the log', () => api.logged().slice(seen).includes('"brokenOff":true'));
  for (const line of api.logged().slice(seen).trim().split('\n')) assert.ok(JSON.parse(line).level < 40, line);
});
