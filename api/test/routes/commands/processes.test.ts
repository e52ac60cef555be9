// Processes over HTTP with a scripted guest: the API's part.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { untilTrue } from '../../../../os/test/until.ts';
import { startApi, type Answer, type CallOptions, type TestApi } from '../../world/api.ts';
import type { FakeProcess } from '../../world/guests/process-guests.ts';

let api: TestApi;
let sandboxId: string;
before(async () => {
  api = await startApi({ durable: false });
  sandboxId = (await api.makeSandbox('ready')).id;
});
after(() => api.close());

const call = (method: 'GET' | 'POST' | 'DELETE', rest = '', options: CallOptions = {}): Promise<Answer> =>
  api.call(method, `/v1/sandboxes/${sandboxId}/processes${rest}`, options);

async function start(body: object = { command: 'serve' }): Promise<{ id: string; guest: FakeProcess }> {
  const answer = await call('POST', '', { body });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  const { id } = answer.body.process;
  return { id, guest: api.front.processes.of(sandboxId).get(id) as FakeProcess };
}

async function read(id: string, query = '', prefer?: string): Promise<Answer['body']> {
  const headers = prefer === undefined ? {} : { prefer };
  const answer = await call('GET', `/${id}/output${query}`, { headers });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return answer.body;
}

test('a start passes its options on, and shows the process', async () => {
  const { id, guest } = await start({
    argv: ['node', 'server.js'],
    cwd: 'app',
    env: { PORT: '3000' },
    user: 'root',
    stdin: true,
    name: 'web',
    timeoutSeconds: 60,
    outputBytes: 65_536,
  });
  assert.match(id, /^prc_[a-z2-7]{24}$/);
  const { digest: _, ...asked } = guest.asked;
  assert.deepEqual(asked, {
    argv: ['node', 'server.js'],
    cwd: 'app',
    env: ['PORT=3000'],
    user: 'root',
    stdin: true,
    keepAwake: false,
    name: 'web',
    limitSeconds: 60,
    outputBytes: 65_536,
  });
  const { body } = await call('GET', `/${id}`);
  const { startedAt, ...rest } = body.process;
  assert.ok(Math.abs(Date.parse(startedAt) - Date.now()) < 600_000);
  assert.deepEqual(rest, {
    id,
    sandboxId,
    name: 'web',
    command: 'node server.js',
    cwd: 'app',
    user: 'root',
    tty: false,
    stdin: true,
    keepAwake: false,
    status: 'running',
    exitCode: null,
    signal: null,
    reason: null,
    endedAt: null,
  });
  guest.end({ exitCode: null, signal: 'SIGKILL', reason: 'out_of_memory' });
  const over = (await call('GET', `/${id}`)).body.process;
  assert.deepEqual([over.status, over.exitCode, over.signal, over.reason], ['exited', 137, 'SIGKILL', 'out_of_memory']);
  const { processes } = (await call('GET')).body;
  assert.equal(processes[0].id, id);
});

test('an invalid start is 400 and names its field', async () => {
  for (const [body, expected] of [
    [{}, /command or argv/],
    [{ command: 'x', argv: ['x'] }, /command or argv/],
    [{ argv: [] }, /body\.argv/],
    [{ command: 'a\0b' }, /body\.command/],
    [{ argv: ['a\0b'] }, /body\.argv/],
    [{ command: 'x', outputBytes: 1 }, /body\.outputBytes/],
    [{ command: 'x', timeoutSeconds: 0 }, /body\.timeoutSeconds/],
    [{ command: 'x', tty: true, cols: 0 }, /body\.cols/],
    [{ command: 'x', name: '' }, /body\.name/],
    [{ command: 'x', keep: true }, /keep/],
  ] as const) {
    const answer = await call('POST', '', { body });
    assert.equal(answer.status, 400, JSON.stringify(body));
    assert.match(answer.body.error.message, expected);
  }
});

test('a start repeated with its key returns the first process, and with another body is a conflict', async () => {
  const headers = { 'idempotency-key': 'one' };
  const first = await call('POST', '', { body: { command: 'once' }, headers });
  const again = await call('POST', '', { body: { command: 'once' }, headers });
  assert.deepEqual([again.status, again.body], [201, first.body]);
  assert.deepEqual(
    [first.headers.get('idempotent-replayed'), again.headers.get('idempotent-replayed')],
    [null, 'true'],
  );
  const other = await call('POST', '', { body: { command: 'twice' }, headers });
  assert.deepEqual([other.status, other.body.error.code], [409, 'idempotency_key_conflict']);
});

test('output is read once each, as text where it is text', async () => {
  const { id, guest } = await start();
  guest.write('stdout', 'line ü\n');
  guest.write('stderr', Buffer.from([0, 255]));
  const first = await read(id);
  assert.deepEqual(first.chunks, [
    { stream: 'stdout', offset: 0, lostBytes: 0, data: 'line ü\n', encoding: 'utf8', cursor: '8.0' },
    { stream: 'stderr', offset: 0, lostBytes: 0, data: 'AP8=', encoding: 'base64', cursor: '8.2' },
  ]);
  assert.deepEqual([first.complete, first.process.status], [false, 'running']);
  assert.deepEqual((await read(id, `?since=${first.cursor}`)).chunks, []);
  guest.write('stdout', Buffer.from('half é').subarray(0, 6));
  const half = await read(id, `?since=${first.cursor}`);
  assert.equal(half.chunks[0].data, 'half ');
  guest.write('stdout', Buffer.from('é').subarray(1));
  const rest = await read(id, `?since=${half.cursor}`);
  assert.equal(rest.chunks[0].data, 'é');
  guest.end();
  const last = await read(id, `?since=${rest.cursor}`);
  assert.deepEqual([last.chunks, last.complete, last.cursor], [[], true, rest.cursor]);
  assert.deepEqual((await read(id, '?tail=2')).chunks[0].data, 'é');
});

test('a cursor of a process without a terminal is none of one with it', async () => {
  const [plain, terminal] = [await start(), await start({ command: 'serve', tty: true })];
  for (const [{ id }, since] of [
    [plain, '5'],
    [terminal, '5.0'],
    [plain, 'x'],
    [plain, `${2 ** 53}.0`],
  ] as const) {
    const { status, body } = await call('GET', `/${id}/output?since=${since}`);
    assert.deepEqual([status, body.error.code, body.error.field], [400, 'invalid_request', 'query.since'], since);
  }
});

test('what is lost is counted before the next bytes', async () => {
  const { id, guest } = await start();
  guest.write('stdout', 'a');
  const { cursor } = await read(id);
  guest.write('stdout', 'z', 10);
  const [chunk] = (await read(id, `?since=${cursor}`)).chunks;
  assert.deepEqual([chunk.offset, chunk.lostBytes, chunk.data], [11, 10, 'z']);
});

test('a bounded wait ends with the first output, and with the end', async () => {
  const { id, guest } = await start();
  const waiting = [read(id, '', 'wait=25'), call('GET', `/${id}`, { headers: { prefer: 'wait=25' } })] as const;
  setTimeout(() => guest.write('stderr', 'late'), 200);
  assert.equal((await waiting[0]).chunks[0].data, 'late');
  guest.end({ exitCode: 3 });
  assert.equal((await waiting[1]).body.process.exitCode, 3);
});

test('a terminal has one output', async () => {
  const { id, guest } = await start({ command: 'top', tty: true, cols: 100, rows: 30 });
  assert.deepEqual(guest.asked.terminal, { rows: 30, cols: 100 });
  guest.write('output', 'screen');
  const { chunks, cursor } = await read(id);
  assert.deepEqual([chunks[0].stream, chunks[0].data], ['output', 'screen']);
  assert.deepEqual((await read(id, `?since=${cursor}`)).chunks, []);
  assert.equal((await call('POST', `/${id}/size`, { body: { cols: 5, rows: 6 } })).status, 200);
  assert.deepEqual(guest.sizes, [{ cols: 5, rows: 6 }]);
  const { id: plain } = await start();
  const refused = await call('POST', `/${plain}/size`, { body: { cols: 5, rows: 6 } });
  assert.deepEqual([refused.status, refused.body.error.code], [409, 'process_has_no_terminal']);
});

test('input is appended, once by its offset, and closed', async () => {
  const { id, guest } = await start({ command: 'cat', stdin: true });
  const write = (body: object): Promise<Answer> => call('POST', `/${id}/stdin`, { body });
  assert.equal((await write({ data: 'ab' })).body.offset, 2);
  assert.equal((await write({ data: '/w==', encoding: 'base64' })).body.offset, 3);
  assert.equal((await write({ data: 'ab', offset: 0 })).body.offset, 3);
  const gap = await write({ data: 'x', offset: 9 });
  assert.deepEqual([gap.status, gap.body.error.code, gap.body.error.field], [409, 'process_input_gap', 'body.offset']);
  const invalid = await write({ data: '???', encoding: 'base64' });
  assert.deepEqual([invalid.status, invalid.body.error.field], [400, 'body.data']);
  assert.equal((await write({ data: 'é'.repeat(600_000) })).status, 400);
  assert.equal((await write({ end: true })).body.offset, 3);
  const closed = (await write({ data: 'x' })).body.error;
  assert.deepEqual([closed.code, closed.message], ['process_over', 'the process has ended, or reads no input']);
  assert.deepEqual(guest.input, Buffer.from('ab\xff', 'latin1'));
});

test('a refused read of the processes of a stopped sandbox names the read', async () => {
  const { id } = await api.makeSandbox('stopped');
  const { status, body } = await api.call('GET', `/v1/sandboxes/${id}/processes`);
  assert.deepEqual([status, body.error.code], [409, 'sandbox_state_conflict']);
  assert.match(body.error.message, /; to read its processes, it must be running or ready$/);
});

test('signals, and what is over', async () => {
  const { id, guest } = await start();
  assert.equal((await call('POST', `/${id}/signal`, { body: {} })).status, 200);
  assert.equal((await call('POST', `/${id}/signal`, { body: { signal: 'SIGINT' } })).status, 200);
  assert.deepEqual(guest.signals, ['SIGTERM', 'SIGINT']);
  assert.equal((await call('POST', `/${id}/signal`, { body: { signal: 'SIGNONE' } })).status, 400);
  guest.end();
  const over = await call('POST', `/${id}/signal`, { body: {} });
  assert.deepEqual([over.status, over.body.error.code], [409, 'process_over']);
  assert.equal(over.body.error.message, 'the process has ended');
});

test('a removed process is not found, and neither is what is no id', async () => {
  const { id } = await start();
  assert.equal((await call('DELETE', `/${id}`)).status, 200);
  for (const other of [id, 'prc_x', '..%2Fexec', 'a%00b']) {
    const answer = await call('GET', `/${other}`);
    assert.deepEqual([answer.status, answer.body.error.code], [404, 'process_not_found'], other);
  }
});

test('a look at processes is no use of the sandbox', async () => {
  const { id } = await start();
  const before = new Date(Date.now() - 3_600_000);
  await api.db.updateTable('sandbox').set({ last_active_at: before }).where('id', '=', sandboxId).execute();
  await call('GET');
  await call('GET', `/${id}`);
  await read(id);
  const activeAt = async (): Promise<Date> =>
    (await api.db.selectFrom('sandbox').select('last_active_at').where('id', '=', sandboxId).executeTakeFirstOrThrow())
      .last_active_at;
  assert.deepEqual(await activeAt(), before);
  await call('POST', `/${id}/signal`, { body: {} });
  assert.notDeepEqual(await activeAt(), before);
});

test('the feed has starts, signals and removals, without the command', async () => {
  const { id } = await start({ command: 'secret words', name: 'secret name' });
  await call('POST', `/${id}/signal`, { body: { signal: 'SIGINT' } });
  await call('DELETE', `/${id}`);
  const rows = await api.db.selectFrom('activity').selectAll().where('sandbox_id', '=', sandboxId).execute();
  const own = rows.filter(({ details }) => JSON.stringify(details).includes(id));
  assert.deepEqual(own.map(({ kind }) => kind).toSorted(), [
    'sandbox_process_removed',
    'sandbox_process_signaled',
    'sandbox_process_started',
  ]);
  assert.equal(JSON.stringify(rows).includes('secret'), false);
});

test('a held read waits for the rest of a character, and returns it in one chunk', async () => {
  const { id, guest } = await start();
  const [first = 0, ...rest] = Buffer.from('ü');
  guest.write('stdout', Buffer.of(first));
  const held = read(id, '', 'wait=20');
  await untilTrue('the first byte was read, and more is waited for', () => guest.reads > 1);
  guest.write('stdout', Buffer.from([...rest, ...Buffer.from('ber')]));
  const { chunks, cursor } = await held;
  assert.deepEqual([chunks[0].data, chunks[0].encoding, chunks.length, cursor], ['über', 'utf8', 1, '5.0']);
  // Nobody sends the rest.
  guest.write('stdout', Buffer.of(first));
  const { chunks: late } = await read(id, `?since=${cursor}`, 'wait=20');
  assert.deepEqual([late[0].data, late[0].encoding], [Buffer.of(first).toString('base64'), 'base64']);
});
