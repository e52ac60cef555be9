// Output of a process over a WebSocket, translated from a possibly hostile guest.
import assert from 'node:assert/strict';
import type { Duplex } from 'node:stream';
import { after, before, test } from 'node:test';
import { errorEnvelope } from '@berth/contract/route/errors.ts';
import { bytesFrames, controlFrame, outputFrame } from '@berth/protocol/terminal-frames.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import { startApi, type TestApi } from '../../world/api.ts';
import type { FakeProcess } from '../../world/guests/process-guests.ts';
import { RecordingWebSocket, requestWebSocket } from '../../world/websocket-client.ts';

let api: TestApi;
let sandboxId: string;
before(async () => {
  api = await startApi({ durable: false });
  sandboxId = (await api.makeSandbox('ready')).id;
});
after(() => api.close());

async function start(body: object = { command: 'serve' }): Promise<{ id: string; guest: FakeProcess }> {
  const answer = await api.call('POST', `/v1/sandboxes/${sandboxId}/processes`, { body });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  const { id } = answer.body.process;
  return { id, guest: api.front.processes.of(sandboxId).get(id) as FakeProcess };
}

const ask = (id: string, query = '', of = sandboxId): ReturnType<typeof requestWebSocket> =>
  requestWebSocket(`${api.url}/v1/sandboxes/${of}/processes/${id}/follow${query}`, {
    authorization: `Bearer ${api.token}`,
  });

async function open(id: string, query = ''): Promise<RecordingWebSocket> {
  const answer = await ask(id, query);
  assert.ok('socket' in answer, JSON.stringify(answer));
  return new RecordingWebSocket(answer.socket);
}

async function refusalOf(id: string, query = '', of = sandboxId): Promise<[number, string, string]> {
  const answer = await ask(id, query, of);
  assert.ok('text' in answer);
  const { error } = errorEnvelope.parse(JSON.parse(answer.text));
  return [answer.status, error.code, error.message];
}

test('frames have the output from the cursor on, what is lost, and that it is complete', async () => {
  const { id, guest } = await start();
  guest.write('stdout', 'one');
  const heard = await open(id, '?since=1.0');
  await heard.until(({ bytes }) => bytes.toString() === '\u0001ne');
  guest.write('stderr', 'two');
  await heard.until(({ bytes }) => bytes.toString() === '\u0001ne\u0002two');
  guest.write('stdout', 'later', 1_000);
  await heard.until(({ bytes }) => bytes.toString().endsWith('\u0001later'));
  guest.end();
  assert.deepEqual(await heard.closed, { code: 1000, reason: '' });
  assert.deepEqual(heard.texts, [{ cursor: '1.0' }, { lost: { stream: 'stdout', bytes: 1_000 } }, { complete: true }]);
});

test('the output of a terminal has no stream numbers, and a tail is counted from the end', async () => {
  const { id, guest } = await start({ command: 'top', tty: true });
  guest.write('output', 'screen');
  const heard = await open(id, '?tail=3');
  await heard.until(({ bytes }) => bytes.toString() === 'een');
  assert.deepEqual(heard.texts, [{ cursor: '3' }]);
  heard.socket.close();
});

test('a follower is no use of the sandbox and leaves nothing in the feed', async () => {
  const { id, guest } = await start();
  const rows = (): Promise<unknown[]> =>
    api.db.selectFrom('activity').selectAll().where('sandbox_id', '=', sandboxId).execute();
  const usedAt = new Date(Date.now() - 600_000);
  const quiet = { last_active_at: usedAt, last_active_by: null };
  await api.db.updateTable('sandbox').set(quiet).where('id', '=', sandboxId).execute();
  const before = (await rows()).length;
  const heard = await open(id);
  guest.write('stdout', 'x');
  await heard.until(({ bytes }) => bytes.length === 2);
  heard.socket.close();
  await heard.closed;
  const row = await api.db.selectFrom('sandbox').selectAll().where('id', '=', sandboxId).executeTakeFirstOrThrow();
  assert.deepEqual([row.last_active_at, (await rows()).length], [usedAt, before]);
});

test('an unknown process, a cursor of another kind and a sandbox that sleeps are refused', async () => {
  const [{ id }, { id: terminal }] = [await start(), await start({ command: 'top', tty: true })];
  assert.deepEqual((await refusalOf('prc_aaaaaaaaaaaaaaaaaaaaaaaa')).slice(0, 2), [404, 'process_not_found']);
  assert.deepEqual((await refusalOf('x')).slice(0, 2), [404, 'process_not_found']);
  for (const [one, query] of [
    [id, '?since=5'],
    [terminal, '?since=5.0'],
    [id, '?since=x'],
    [id, '?since=9999999999999999.0'],
    [id, '?tail=-1'],
  ] as const) {
    const [status, code, message] = await refusalOf(one, query);
    assert.deepEqual([status, code], [400, 'invalid_request'], query);
    assert.match(message, /query\.(since|tail)/);
  }
  const { id: asleep } = await api.makeSandbox('stopped');
  assert.deepEqual((await refusalOf(id, '', asleep)).slice(0, 2), [409, 'sandbox_state_conflict']);
});

test('a client may pause, but sends no bytes', async () => {
  const { id, guest } = await start();
  const heard = await open(id);
  heard.socket.send('{"pause":true}');
  heard.socket.send('{"pause":false}');
  guest.write('stdout', 'x');
  await heard.until(({ bytes }) => bytes.length === 2);
  heard.socket.send(Buffer.from('input'));
  const { code, reason } = await heard.closed;
  assert.equal(code, 1003);
  assert.match(reason, /POST/);
  const other = await open(id);
  other.socket.send('{"end":true}');
  assert.equal((await other.closed).code, 1003);
});

test('it closes when its key is revoked, and when the sandbox falls asleep', async () => {
  const { id } = await start();
  const token = await api.makeKey({ role: 'member' });
  const me = await api.call('GET', '/v1/me', { token });
  const answer = await requestWebSocket(`${api.url}/v1/sandboxes/${sandboxId}/processes/${id}/follow`, {
    authorization: `Bearer ${token}`,
  });
  assert.ok('socket' in answer, JSON.stringify(answer));
  const revoked = new RecordingWebSocket(answer.socket);
  await revoked.until(({ texts }) => texts.length === 1);
  const createdBy = me.body.id;
  await api.db.updateTable('api_key').set({ revoked_at: new Date() }).where('created_by', '=', createdBy).execute();
  assert.deepEqual(await revoked.closed, { code: 4401, reason: 'unauthenticated' });

  const heard = await open(id);
  await heard.until(({ texts }) => texts.length === 1);
  await api.db.updateTable('sandbox').set({ status: 'stopped' }).where('id', '=', sandboxId).execute();
  api.front.processes.breakCalls(sandboxId);
  assert.deepEqual(await heard.closed, { code: 4409, reason: 'sandbox_state_conflict' });
  await api.db.updateTable('sandbox').set({ status: 'ready' }).where('id', '=', sandboxId).execute();
});

test('a guest that breaks the protocol is cut off, and nothing of it is passed on', async (t) => {
  const starts = controlFrame({ starts: { stdout: 0, stderr: 0 } });
  const { id } = await start();
  const { processes } = api.front;
  for (const frames of [
    [outputFrame(1, Buffer.from('early'))],
    [controlFrame({ complete: true })],
    [controlFrame({ starts: {} })],
    [starts, starts],
    [starts, bytesFrames(Buffer.from('no number'))],
    [starts, bytesFrames(Buffer.from([1]))],
    [starts, controlFrame({ lost: { stream: 'output', bytes: 5 } })],
    [starts, controlFrame({ lost: { stream: 'stdout', bytes: -5 } })],
    [starts, controlFrame({ exit: 0 })],
    [starts, controlFrame({ complete: true }), outputFrame(1, Buffer.from('late'))],
    [starts, Buffer.from([7, 0, 0, 0, 0])],
    [starts, controlFrame({ removed: true })],
    [starts],
  ]) {
    let guest: Duplex | undefined;
    t.mock.method(processes, 'follow', () => (caller: Duplex) => {
      guest = caller;
      caller.end(Buffer.concat(frames));
    });
    const heard = await open(id);
    assert.notEqual((await heard.closed).code, 1000);
    assert.equal(heard.bytes.length, 0);
    await untilTrue('the stream is closed', () => guest?.destroyed === true);
  }
});
