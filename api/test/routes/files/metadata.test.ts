// Facts and modes of files over HTTP with a scripted host.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { startApi, type TestApi } from '../../world/api.ts';
import { type FileCall, type FileScript } from '../../world/guests/exec-front.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';

let api: TestApi;
let sandboxId: string;
let defaults: FileScript;
let calls: FileCall[];
before(async () => {
  api = await startApi({ durable: false });
  defaults = api.front.files;
});
after(() => api.close());
beforeEach(async () => {
  calls = [];
  answerWith(defaults);
  sandboxId = (await api.makeSandbox('ready')).id;
});

function answerWith(script: FileScript): void {
  api.front.files = (call) => {
    calls.push(call);
    return script(call);
  };
}

const at = (route: string): string => `/v1/sandboxes/${sandboxId}/${route}`;

test('a stat has the absolute path, and the facts that the guest sends', async () => {
  const link = { kind: 'link', size: 3, mtimeSeconds: -7, mode: '0777' };
  const shown = { kind: 'link', size: 3, modifiedAt: '1969-12-31T23:59:53.000Z', mode: '0777' };
  for (const [given, sent, expected] of [
    ['a/../b/', { ...link, kind: 'file', mode: '4755' }, { ...shown, path: '/code/b', kind: 'file', mode: '4755' }],
    ['/', { ...link, kind: 'directory' }, { ...shown, path: '/', kind: 'directory' }],
    ['l', { ...link, target: 'a\n', resolved: 'directory' }, { ...shown, linkTarget: 'a\n', resolvesTo: 'directory' }],
    ['l', { ...link, resolved: null }, { ...shown, resolvesTo: null }],
    ['l', { ...link, mtimeSeconds: 9e12 }, { ...shown, modifiedAt: null }],
  ] as const) {
    answerWith(() => sent);
    const answer = await api.call('GET', at(`files/stat?path=${given}`));
    assert.deepEqual([answer.status, answer.body], [200, { path: '/code/l', ...expected }]);
    assert.deepEqual([calls.at(-1)?.verb, calls.at(-1)?.query], ['stat', { path: answer.body['path'] }]);
  }
  assert.equal((await api.call('GET', at('files/stat'))).status, 400);
});

async function feed(): Promise<[string, unknown][]> {
  const rows = await api.db
    .selectFrom('activity')
    .select(['kind', 'details'])
    .where('sandbox_id', '=', sandboxId)
    .execute();
  return rows.map(({ kind, details }): [string, unknown] => [kind, details]);
}

test('a mode is passed on with four digits, alone and with both forms of a write', async () => {
  const streams: string[] = [];
  const { stream } = api.front;
  api.front.stream = (vmId, target) => {
    streams.push(target);
    return stream(vmId, target);
  };
  const changed = await api.call('POST', at('files/mode'), { body: { path: 'a/', mode: '755' } });
  assert.deepEqual([changed.status, changed.body], [200, { path: '/code/a', mode: '0755' }]);
  assert.deepEqual([calls.at(-1)?.verb, calls.at(-1)?.query], ['mode', { path: '/code/a', mode: '0755' }]);
  await api.call('PUT', at('file'), { body: { path: 'a', content: '', mode: '0600' } });
  assert.deepEqual(calls.at(-1)?.query, { path: '/code/a', mode: '0600' });
  await api.call('PUT', at('file'), { body: { path: 'a', content: '' } });
  assert.deepEqual(calls.at(-1)?.query, { path: '/code/a' });
  assert.equal((await api.call('PUT', at('file/content?path=a&mode=640'), { rawBody: 'x' })).status, 200);
  api.front.stream = stream;
  assert.equal(streams.at(-1), 'file/stream?path=%2Fcode%2Fa&bytes=1&mode=0640');
  assert.deepEqual((await feed()).find(([kind]) => kind === 'sandbox_file_mode_changed')?.[1], {
    path: '/code/a',
    mode: '0755',
  });
});

test('anything but permission bits in octal is refused as a mode before the host', async () => {
  for (const mode of ['', '4755', '04755', '1777', '+x', 'u+x', '0888', '7', '00644', '0o644', ' 644', 644, null]) {
    for (const [method, route, body] of [
      ['POST', 'files/mode', { path: 'a', mode }],
      ['PUT', 'file', { path: 'a', content: '', mode }],
    ] as const) {
      const answer = await api.call(method, at(route), { body });
      assert.deepEqual([answer.status, answer.body.error.field], [400, 'body.mode'], JSON.stringify(mode));
    }
    const given = encodeURIComponent(String(mode));
    if (typeof mode === 'string')
      assert.equal((await api.call('PUT', at(`file/content?path=a&mode=${given}`), { rawBody: 'x' })).status, 400);
  }
  assert.equal((await api.call('POST', at('files/mode'), { body: { path: '/', mode: '755' } })).status, 400);
  assert.deepEqual([calls, await feed()], [[], []]);
});

test('a sandbox of an earlier release refuses a mode, and a failed change leaves no row', async () => {
  answerWith(() => {
    throw new ExecRefusal('file_call_unsupported', 'no');
  });
  for (const answer of [
    await api.call('POST', at('files/mode'), { body: { path: 'a', mode: '755' } }),
    await api.call('PUT', at('file'), { body: { path: 'a', content: '', mode: '755' } }),
  ])
    assert.deepEqual([answer.status, answer.body.error.code], [409, 'file_call_unsupported']);
  assert.deepEqual(await feed(), []);
});

test('setting a mode needs the write permission, a stat the read permission', async () => {
  const writes = await api.makeKey({ scopes: ['sandbox.files.write'] });
  const reads = await api.makeKey({ scopes: ['sandbox.files.read'] });
  for (const [token, expected] of [
    [writes, [200, 403]],
    [reads, [403, 200]],
  ] as const) {
    const answers = [
      await api.call('POST', at('files/mode'), { token, body: { path: 'a', mode: '755' } }),
      await api.call('GET', at('files/stat?path=a'), { token }),
    ];
    assert.deepEqual(
      answers.map(({ status }) => status),
      expected,
    );
  }
});

test('a stat that violates its form is 503, and its text is not passed on', async () => {
  const file = { kind: 'file', size: 3, mtimeSeconds: 1, mode: '0644' };
  for (const sent of [
    {},
    { ...file, extra: 1 },
    { ...file, kind: 'hostile' },
    { ...file, size: -1 },
    { ...file, size: 1e300 },
    { ...file, mtimeSeconds: 0.5 },
    { ...file, mode: '644' },
    { ...file, mode: '0999' },
    { ...file, target: '' },
    { ...file, target: 'x'.repeat(4_096) },
    { ...file, target: 'a\ud800' },
    { ...file, target: 'a\0b' },
    { ...file, resolved: 'link' },
    Buffer.from(JSON.stringify({ ...file, target: 'x'.repeat(100_000) })),
  ]) {
    answerWith(() => sent);
    const answer = await api.call('GET', at('files/stat?path=a'));
    assert.equal(answer.status, 503, JSON.stringify(sent));
    assert.equal(JSON.stringify(answer.body).includes('hostile'), false);
  }
});

test('a sandbox of an earlier release refuses a stat, and lists without details', async () => {
  answerWith((call) => {
    if (call.verb === 'stat') throw new ExecRefusal('file_call_unsupported', 'words of a stranger');
    return defaults(call);
  });
  const { status, body } = await api.call('GET', at('files/stat?path=a'));
  assert.deepEqual([status, body.error.code], [409, 'file_call_unsupported']);
  assert.match(body.error.message, /^cannot carry out the call on "\/code\/a": .*create another sandbox$/);

  answerWith((call) => {
    if (call.target.startsWith('files/entries')) throw new ExecRefusal('file_call_unsupported', 'no');
    return Buffer.from('D\0fa\0m3 1\0EC');
  });
  const listing = await api.call('GET', at('files'));
  assert.deepEqual(listing.body['entries'], [
    { label: 'a', path: '/code/a', type: 'file', kind: 'file', size: 3, modifiedAt: '1970-01-01T00:00:01.000Z' },
  ]);
  assert.equal((await api.call('GET', at('files/snapshot'))).status, 200);
});

test('a listing has modes and targets of links; a target that is not UTF-8 is absent', async () => {
  answerWith(() => Buffer.from('D\0fa\0m3 1 0600\0lb\0m3 1 0777\0ta\n/..\0lc\0m3 1 0777\0t\xff\0EC', 'latin1'));
  const listing = await api.call('GET', at('files'));
  assert.deepEqual(
    (listing.body['entries'] as Record<string, unknown>[]).map(({ label, mode, linkTarget }) => [
      label,
      mode,
      linkTarget,
    ]),
    [
      ['a', '0600', undefined],
      ['b', '0777', 'a\n/..'],
      ['c', '0777', undefined],
    ],
  );
  assert.equal(calls[0]?.target.startsWith('files/entries?'), true);
});
