// Terminals over WebSocket: bytes, control frames and the exit code, translated to and from a
// possibly hostile sandbox.
import assert from 'node:assert/strict';
import type { Duplex } from 'node:stream';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { errorEnvelope } from '@berth/contract/route/errors.ts';
import {
  bytesFrames,
  COMMAND_STREAM,
  controlFrame,
  FrameReader,
  outputFrame,
  TERMINAL_FRAME,
} from '@berth/protocol/terminal-frames.ts';
import { ensureAwake } from '../../../src/services/sandboxes/use.ts';
import { newId } from '../../../src/store/database/ids.ts';
import { insertProject } from '../../../src/store/orgs/projects.ts';
import { startApi, type TestApi } from '../../world/api.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import { requestWebSocket, RecordingWebSocket } from '../../world/websocket-client.ts';

let api: TestApi;
/** Sandbox's end of the last terminal: its request and received frames. */
let shell: { target: string; stream: Duplex; typed: string; orders: unknown[]; frames: number };
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(() => {
  api.front.stream = (_vmId, target) => (stream) => {
    const own = { target, stream, typed: '', orders: [] as unknown[], frames: 0 };
    shell = own;
    const reader = new FrameReader((kind, content) => {
      own.frames += 1;
      if (kind === TERMINAL_FRAME.bytes) own.typed += content.toString('utf8');
      else own.orders.push(JSON.parse(content.toString('utf8')));
    });
    stream.on('data', (chunk: Buffer) => reader.push(chunk));
  };
});
afterEach(() => shell?.stream.destroy());

const pathOf = (id: string, query: string): string => `${api.url}/v1/sandboxes/${id}/terminal${query}`;
const headers = (): { authorization: string } => ({ authorization: `Bearer ${api.token}` });

async function open(query = ''): Promise<{ heard: RecordingWebSocket; id: string }> {
  const { id } = await api.makeSandbox('ready');
  const answer = await requestWebSocket(pathOf(id, query), headers());
  assert.ok('socket' in answer, JSON.stringify(answer));
  return { heard: new RecordingWebSocket(answer.socket), id };
}

test('keys and output pass; the exit code is the last frame before the close', async () => {
  const { heard, id } = await open('?cols=132&rows=43');
  assert.equal(shell.target, 'terminal?cols=132&rows=43');
  heard.socket.send(Buffer.from('ls ü\n'));
  await untilTrue('the keys arrive', () => shell.typed === 'ls ü\n');
  // Frames cut at network boundaries.
  const frames = Buffer.concat([bytesFrames(Buffer.from('file-ü')), bytesFrames(Buffer.from('\r\n'))]);
  for (const byte of frames) shell.stream.write(Buffer.from([byte]));
  await heard.until(({ bytes }) => bytes.toString() === 'file-ü\r\n');
  shell.stream.end(Buffer.concat([bytesFrames(Buffer.from('logout')), controlFrame({ exit: 7 })]));
  assert.deepEqual(await heard.closed, { code: 1000, reason: '' });
  assert.deepEqual([heard.bytes.toString(), heard.texts], ['file-ü\r\nlogout', [{ exit: 7 }]]);
  const row = await api.db.selectFrom('activity').selectAll().where('sandbox_id', '=', id).executeTakeFirstOrThrow();
  assert.deepEqual([row.kind, row.details], ['sandbox_connected', { terminal: true }]);
});

test('a terminal defaults to 80 columns and 24 rows; an invalid size is 400', async () => {
  const { heard, id } = await open();
  assert.equal(shell.target, 'terminal?cols=80&rows=24');
  heard.socket.close();
  for (const query of ['?cols=0', '?rows=1001', '?cols=-1', '?cols=8.5', '?rows=', '?cols=1e2', '?rows=12345']) {
    const answer = await requestWebSocket(pathOf(id, query), headers());
    assert.ok('text' in answer, query);
    const { error } = errorEnvelope.parse(JSON.parse(answer.text));
    assert.deepEqual([answer.status, error.code], [400, 'invalid_request']);
    assert.match(error.message, /query\.(cols|rows) must be a whole number from 1 to 1000/);
  }
});

test('a command takes the options of exec; a login shell takes none', async () => {
  const staged: string[][] = [];
  api.front.variables = (_id, env) => void staged.push(env);
  const options = 'cwd=my%20app&user=root&env[A]=1%262&env[_B]=';
  const { heard, id } = await open(`?command=true&${options}`);
  const target = new URLSearchParams(shell.target.slice('terminal?'.length));
  assert.deepEqual([target.get('cwd'), target.get('user')], ['my app', 'root']);
  assert.deepEqual(staged, [['A=1&2', '_B=']]);
  heard.socket.close();
  for (const [query, problem] of [
    [options, /query\.command must be given with cwd: a login shell has no such option/],
    ['env[A]=1', /query\.command must be given with env/],
    ['command=true&user=a%20b', /query\.user must be the name of a user/],
    ['command=true&env[1A]=x', /query\.env.* must be letters, digits and _/],
    ['command=true&env=x', /query\.env/],
    ['command=true&cwd=', /query\.cwd/],
  ] as const) {
    const answer = await requestWebSocket(pathOf(id, `?${query}`), headers());
    assert.ok('text' in answer, query);
    const { error } = errorEnvelope.parse(JSON.parse(answer.text));
    assert.deepEqual([answer.status, error.code], [400, 'invalid_request'], query);
    assert.match(error.message, problem);
  }
  assert.equal(staged.length, 1);
});

for (const [refusal, status, code, message] of [
  ['command_cwd_invalid', 400, 'invalid_request', /query\.cwd must be a directory.*"\/no"/],
  ['command_user_unknown', 400, 'invalid_request', /query\.user must be a user of the sandbox.*"nobody"/],
  ['exec_options_unsupported', 409, 'exec_options_unsupported', /of a release without cwd, env, user/],
] as const) {
  test(`a command refused with ${refusal} is ${status} ${code}`, async () => {
    const { id } = await api.makeSandbox('ready');
    api.front.stream = () => {
      throw new ExecRefusal(refusal, 'hostile text');
    };
    const answer = await requestWebSocket(pathOf(id, '?command=true&cwd=/no&user=nobody'), headers());
    assert.ok('text' in answer);
    const { error } = errorEnvelope.parse(JSON.parse(answer.text));
    assert.deepEqual([answer.status, error.code], [status, code]);
    assert.match(error.message, message);
  });
}

test('a terminal with mayWake=false wakes no sandbox, also one that just fell asleep', async () => {
  const project = await insertProject(api.db, {
    id: newId('project'),
    org_id: api.orgId,
    name: 'wakes',
    use_case: 'internal',
    wake_on_use: true,
    created_by: api.userId,
  });
  const row = await api.makeSandbox('stopped', { project_id: project.id, last_active_at: new Date(0) });
  const answer = await requestWebSocket(pathOf(row.id, '?mayWake=false'), headers());
  assert.ok('text' in answer);
  const { error } = errorEnvelope.parse(JSON.parse(answer.text));
  assert.deepEqual([answer.status, error.code], [409, 'sandbox_state_conflict']);

  const seenAwake = { ...row, status: 'ready', host_url: 'unix:/nowhere' } as const;
  const actor = { kind: 'system', id: null, userId: null } as const;
  const use = { action: 'connect', signalOfUse: 'connect', mayWake: false } as const;
  await assert.rejects(ensureAwake(api.context, actor, seenAwake, use, new AbortController().signal), {
    code: 'sandbox_state_conflict',
  });
  assert.equal(
    api.steps.some(({ step }) => step.sandboxId === row.id),
    false,
  );
});

test('control frames are forwarded unchanged', async () => {
  const { heard } = await open();
  const orders = [{ resize: { cols: 100, rows: 50 } }, { signal: 'SIGINT' }, { resize: { cols: 1, rows: 1_000 } }];
  orders.forEach((order) => heard.socket.send(JSON.stringify(order)));
  await untilTrue('the orders arrive', () => shell.orders.length === orders.length);
  assert.deepEqual(shell.orders, orders);
  heard.socket.close();
});

for (const text of [
  '{"resize":{"cols":0,"rows":1}}',
  '{"resize":{"cols":80}}',
  '{"signal":"SIGSEGV"}',
  '{"signal":2}',
  '{"resize":{"cols":80,"rows":24},"signal":"SIGINT"}',
  '{"end":true}',
  '{"pause":"yes"}',
  '{"pause":1}',
  '{"pause":null}',
  '{"pause":true,"signal":"SIGINT"}',
  '[]',
  'ls',
]) {
  test(`the text frame ${text} closes the terminal with the list of allowed frames`, async () => {
    const { heard } = await open();
    heard.socket.send(text);
    const { code, reason } = await heard.closed;
    assert.equal(code, 1003);
    assert.match(reason, /resize.*signal.*pause.*"bearer":"\.\."}$/);
  });
}

for (const [what, frames] of [
  ['no frames', Buffer.from('\x09 hello')],
  ['a frame beyond the limit', Buffer.from([0, 0xff, 0xff, 0xff, 0xff])],
  ['control that is no JSON', Buffer.concat([Buffer.from([1, 0, 0, 0, 2]), Buffer.from('{{')])],
  ['an exit code that is none', controlFrame({ exit: 256 })],
  ['control that is none', controlFrame({ resize: { cols: 1, rows: 1 } })],
  ['more after the exit code', Buffer.concat([controlFrame({ exit: 0 }), bytesFrames(Buffer.from('x'))])],
] as const) {
  test(`a sandbox that sends ${what} closes its terminal only`, async () => {
    const { heard } = await open();
    shell.stream.write(frames);
    const { code, reason } = await heard.closed;
    assert.deepEqual([code, reason], [1011, 'the terminal of the sandbox violated its protocol']);
    assert.equal((await api.call('GET', '/health')).status, 200);
  });
}

test('a terminal that ends without an exit code is closed with 1011', async () => {
  const { heard } = await open();
  shell.stream.end(bytesFrames(Buffer.from('half a')));
  const { code } = await heard.closed;
  assert.deepEqual([code, heard.texts, heard.bytes.toString()], [1011, [], 'half a']);
});

test("a long paste is forwarded whole, in frames within the sandbox's limit", async () => {
  const { heard } = await open();
  const paste = 'x'.repeat(1_000_000);
  heard.socket.send(Buffer.from(paste));
  await untilTrue('all of it arrives', () => shell.typed.length === paste.length);
  assert.equal(shell.typed, paste);
  heard.socket.close();
});

test('each pong of the client sends a heartbeat that keeps the terminal open at the host', async () => {
  const other = await startApi({ durable: false, bounds: { pingEveryMs: 1_000 } });
  try {
    const { id } = await other.makeSandbox('ready');
    const heartbeats = Promise.withResolvers<void>();
    let frames = 0;
    other.front.stream = () => (stream) => {
      const reader = new FrameReader((kind, content) => {
        assert.deepEqual([kind, content.length], [TERMINAL_FRAME.bytes, 0]);
        frames += 1;
        if (frames === 3) heartbeats.resolve();
      });
      stream.on('data', (chunk: Buffer) => reader.push(chunk));
    };
    const answer = await requestWebSocket(`${other.url}/v1/sandboxes/${id}/terminal`, {
      authorization: `Bearer ${other.token}`,
    });
    assert.ok('socket' in answer);
    const heard = new RecordingWebSocket(answer.socket);
    await Promise.race([heartbeats.promise, heard.closed.then(({ code }) => assert.fail(`closed with ${code}`))]);
    heard.socket.terminate();
  } finally {
    await other.close();
  }
});

test('a command runs in a terminal or with pipes, unchanged; the feed omits its text', async () => {
  const command = "printf '%s' 'ü & + #'; exit 3";
  const asked = new URLSearchParams({ command }).toString();
  const { heard, id } = await open(`?cols=100&${asked}`);
  assert.equal(shell.target, `terminal?cols=100&rows=24&${asked}`);
  shell.stream.end(controlFrame({ exit: 143, signal: 'SIGTERM' }));
  await heard.closed;
  assert.deepEqual(heard.texts, [{ exit: 143, signal: 'SIGTERM' }]);
  const other = await open(`?tty=false&cols=7&${asked}`);
  assert.equal(shell.target, `terminal?tty=false&${asked}`);
  other.heard.socket.close();
  for (const [sandboxId, terminal] of [
    [id, true],
    [other.id, false],
  ] as const) {
    const row = await api.db
      .selectFrom('activity')
      .selectAll()
      .where('sandbox_id', '=', sandboxId)
      .executeTakeFirstOrThrow();
    assert.deepEqual([row.kind, row.details], ['sandbox_connected', { command: true, terminal }]);
  }
});

test('command frames carry input, its end and signals; output frames name their stream', async () => {
  const { heard } = await open('?tty=false&command=x');
  const orders = [{ signal: 'SIGWINCH' }, { end: true }, { signal: 'SIGTERM' }];
  heard.socket.send(Buffer.from('in'));
  orders.forEach((order) => heard.socket.send(JSON.stringify(order)));
  await untilTrue('the orders arrive', () => shell.orders.length === orders.length);
  assert.deepEqual([shell.typed, shell.orders], ['in', orders]);
  shell.stream.write(
    Buffer.concat([bytesFrames(new Uint8Array(0)), outputFrame(COMMAND_STREAM.stdout, Buffer.from('o'))]),
  );
  shell.stream.end(Buffer.concat([outputFrame(COMMAND_STREAM.stderr, Buffer.from('e')), controlFrame({ exit: 0 })]));
  assert.deepEqual(await heard.closed, { code: 1000, reason: '' });
  assert.deepEqual([heard.bytes.toString(), heard.texts], ['\x01o\x02e', [{ exit: 0 }]]);
});

for (const [what, frames] of [
  ['{"resize":{"cols":80,"rows":24}}', ['{"resize":{"cols":80,"rows":24}}']],
  ['{"end":false}', ['{"end":false}']],
  ['{"end":true,"signal":"SIGINT"}', ['{"end":true,"signal":"SIGINT"}']],
  ['{"pause":{}}', ['{"pause":{}}']],
  ['bytes after the end of the input', ['{"end":true}', Buffer.from('x')]],
] as const) {
  test(`for a command with pipes, ${what} closes it with 1003`, async () => {
    const { heard } = await open('?tty=false&command=x');
    frames.forEach((frame) => heard.socket.send(frame));
    assert.equal((await heard.closed).code, 1003);
  });
}

for (const [what, frame] of [
  ['of no stream', bytesFrames(Buffer.from('\x03x'))],
  ['of a stream and nothing', bytesFrames(Buffer.from('\x01'))],
  ['of an end by what is no signal', controlFrame({ exit: 1, signal: 'sig' })],
] as const) {
  test(`a sandbox that sends a frame ${what} closes its command only`, async () => {
    const { heard } = await open('?tty=false&command=x');
    shell.stream.write(frame);
    assert.equal((await heard.closed).code, 1011);
    assert.equal((await api.call('GET', '/health')).status, 200);
  });
}

test('an invalid command is 400 with the reason; one too long for a request head is 431', async () => {
  const { id } = await api.makeSandbox('ready');
  for (const [query, status, message] of [
    ['?tty=false', 400, /query\.command must be given with tty=false/],
    ['?tty=0', 400, /query\.tty/],
    ['?command=', 400, /query\.command/],
    ['?command=a%00b', 400, /query\.command must not contain NUL/],
    ['?command=a&command=b', 400, /query\.command/],
    [`?command=${'x'.repeat(17_000)}`, 431, /./],
  ] as const) {
    const answer = await requestWebSocket(pathOf(id, query), headers());
    assert.ok('text' in answer, query);
    const { error } = errorEnvelope.parse(JSON.parse(answer.text));
    assert.equal(answer.status, status);
    assert.match(error.message, message);
  }
});

test('a disconnected client under back-pressure is noticed before its next ping', async () => {
  const other = await startApi({ durable: false, bounds: { pingEveryMs: 3_600_000 } });
  try {
    const closed = Promise.withResolvers<void>();
    other.front.stream = () => (stream) => {
      stream.pause();
      stream.once('close', () => closed.resolve());
      // An unread connection does not report its end either: the guest writes to it.
      const probe = setInterval(() => stream.write(bytesFrames(new Uint8Array(0))), 200);
      stream.once('close', () => clearInterval(probe));
      stream.on('error', () => undefined);
    };
    const { id } = await other.makeSandbox('ready');
    const url = `${other.url}/v1/sandboxes/${id}/terminal?tty=false&command=x`;
    const answer = await requestWebSocket(url, { authorization: `Bearer ${other.token}` });
    assert.ok('socket' in answer);
    const { socket } = new RecordingWebSocket(answer.socket);
    for (let sent = 0; sent < 64; sent += 1) socket.send(Buffer.alloc(1_048_576));
    let before = -1;
    await untilTrue('nothing more is taken', async () => {
      const still = before === socket.bufferedAmount;
      before = socket.bufferedAmount;
      await delay(100);
      return still && before > 0;
    });
    socket.terminate();
    await closed.promise;
  } finally {
    await other.close();
  }
});
