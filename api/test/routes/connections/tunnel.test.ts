// Tunnels: bytes to and from a sandbox port over a WebSocket, and what closes them.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { Duplex } from 'node:stream';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { errorEnvelope } from '@berth/contract/route/errors.ts';
import { WEBSOCKET } from '@berth/contract/route/limits.ts';
import { lockSandbox } from '../../../src/store/sandboxes/sandboxes.ts';
import { transitionSandbox } from '../../../src/services/sandboxes/transition.ts';
import { newId } from '../../../src/store/database/ids.ts';
import { insertProject } from '../../../src/store/orgs/projects.ts';
import { signInAs, startApi, type TestApi } from '../../world/api.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { untilTrue } from '../../../../os/test/until.ts';
import { requestWebSocket, RecordingWebSocket } from '../../world/websocket-client.ts';

const SYSTEM = { kind: 'system', id: null, userId: null } as const;
const LONG_AGO = new Date(Date.now() - 3_600_000);

let api: TestApi;
/** Streams opened into sandboxes: target and the sandbox's end. */
let opened: { vmId: string; target: string; stream: Duplex }[];
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(() => {
  opened = [];
  api.front.stream = (vmId, target) => (stream) => {
    opened.push({ vmId, target, stream });
    stream.pipe(stream);
  };
});
afterEach(() => opened.forEach(({ stream }) => stream.destroy()));

const pathOf = (id: string, query = ''): string => `${api.url}/v1/sandboxes/${id}/tunnel${query}`;
const bearer = (token: string): { authorization: string } => ({
  authorization: `Bearer ${api.secret(token, 'a token of a tunnel')}`,
});

interface RequestOptions {
  query?: string;
  headers?: Record<string, string>;
  protocols?: readonly string[];
}

async function open(
  id: string,
  { query, headers = bearer(api.token), protocols }: RequestOptions = {},
): Promise<RecordingWebSocket> {
  const answer = await requestWebSocket(pathOf(id, query), headers, protocols);
  assert.ok('socket' in answer, JSON.stringify(answer));
  return new RecordingWebSocket(answer.socket);
}

async function refusal(
  id: string,
  { query, headers = bearer(api.token), protocols }: RequestOptions = {},
): Promise<[number, string, string]> {
  const answer = await requestWebSocket(pathOf(id, query), headers, protocols);
  if ('socket' in answer) answer.socket.terminate();
  assert.ok('text' in answer, 'it was not refused');
  const { error } = errorEnvelope.parse(JSON.parse(answer.text));
  return [answer.status, error.code, error.message];
}

/** Sandbox's end of the only stream. */
function inSandbox(): Duplex {
  const [first] = opened;
  assert.ok(first !== undefined && opened.length === 1);
  return first.stream;
}

async function putToSleep(id: string): Promise<void> {
  const { outcome } = await api.db.transaction().execute(async (trx) => {
    const now = await lockSandbox(trx, id);
    return await transitionSandbox(trx, {
      sandboxId: id,
      epoch: now?.epoch ?? 0,
      to: 'sleeping',
      actor: SYSTEM,
      newEpoch: true,
    });
  });
  assert.equal(outcome, 'changed');
}

test('a tunnel carries bytes both ways; its port defaults to 22', async () => {
  const { id } = await api.makeSandbox('ready');
  const heard = await open(id);
  heard.socket.send(Buffer.from('hello '));
  heard.socket.send(Buffer.from('there'));
  await heard.until(({ bytes }) => bytes.toString() === 'hello there');
  const other = await open(id, { query: '?port=8080' });
  assert.deepEqual(
    opened.map(({ vmId, target }) => [vmId, target]),
    [
      [id, 'ports/22'],
      [id, 'ports/8080'],
    ],
  );
  heard.socket.close();
  other.socket.close();
  await Promise.all(opened.map(({ stream }) => once(stream, 'close')));
});

test('large transfers arrive complete, with back-pressure both ways', async () => {
  const { id } = await api.makeSandbox('ready');
  api.front.stream = () => (stream) => void opened.push({ vmId: id, target: '', stream: stream.pause() });
  const heard = await open(id);
  const sent = randomBytes(16 * 1_048_576);
  for (let at = 0; at < sent.length; at += WEBSOCKET.frameBytes)
    heard.socket.send(sent.subarray(at, at + WEBSOCKET.frameBytes));
  // The sandbox reads nothing: most bytes stay with the sender.
  await untilTrue('the sender is held back', () => inSandbox().readableLength > 0);
  assert.ok(heard.socket.bufferedAmount > 4 * 1_048_576, `${heard.socket.bufferedAmount} bytes are unsent`);

  const hash = createHash('sha256');
  let received = 0;
  inSandbox().on('data', (chunk: Buffer) => {
    hash.update(chunk);
    received += chunk.length;
  });
  inSandbox().resume();
  await untilTrue('all of it arrives', () => received === sent.length);
  assert.equal(hash.digest('hex'), createHash('sha256').update(sent).digest('hex'));

  heard.socket.pause();
  let written = 0;
  const chunk = Buffer.alloc(1_048_576, 'x');
  while (written < 256 && inSandbox().write(chunk)) written += 1;
  await untilTrue('the sandbox is held back', () => inSandbox().writableNeedDrain);
  heard.socket.resume();
  await heard.until(({ bytes }) => bytes.length === (written + 1) * chunk.length);
  heard.socket.close();
});

test('half-close is forwarded and keeps the other direction open; both ends close the tunnel', async () => {
  const { id } = await api.makeSandbox('ready');
  api.front.stream = () => (stream) => {
    let asked = '';
    stream.on('data', (chunk: Buffer) => (asked += chunk.toString()));
    stream.once('end', () => stream.end(`you said ${asked}`));
  };
  const asking = await open(id);
  asking.socket.send(Buffer.from('something'));
  asking.socket.send(JSON.stringify({ end: true }));
  assert.deepEqual(await asking.closed, { code: 1000, reason: '' });
  assert.deepEqual([asking.bytes.toString(), asking.texts], ['you said something', [{ end: true }]]);

  const read = Promise.withResolvers<string>();
  api.front.stream = () => (stream) => {
    stream.end('I am done');
    void stream.toArray().then((chunks: Buffer[]) => read.resolve(Buffer.concat(chunks).toString()));
  };
  const listening = await open(id);
  await listening.until(({ texts }) => texts.length === 1);
  assert.deepEqual([listening.bytes.toString(), listening.texts], ['I am done', [{ end: true }]]);
  listening.socket.send(Buffer.from('and I go on'));
  listening.socket.send(JSON.stringify({ end: true }));
  assert.equal(await read.promise, 'and I go on');
  assert.equal((await listening.closed).code, 1000);
});

test('an invalid port is 400 and names the allowed range', async () => {
  const { id } = await api.makeSandbox('ready');
  for (const port of ['0', '65536', '-1', '022', '22.0', '2e1', 'ssh', '', '%2022']) {
    const [status, code, message] = await refusal(id, { query: `?port=${port}` });
    assert.deepEqual([status, code], [400, 'invalid_request'], port);
    assert.match(message, /query\.port must be a whole number from 1 to 65535/);
  }
  assert.equal((await refusal(id, { query: '?port=22&port=23' }))[1], 'invalid_request');
  assert.deepEqual(opened, []);
});

for (const [hostCode, expected, message] of [
  ['port_refused', [502, 'port_refused'], /nothing listens on port 5432 of the sandbox/],
  ['port_forbidden', [403, 'port_forbidden'], /port 5432 is reserved for Berth's guest daemon/],
  ['too_many_streams', [429, 'too_many_connections'], /the limit of open connections/],
  ['guest_unreachable', [503, 'sandbox_unreachable'], /gave no valid response/],
  ['vm_not_running', [503, 'sandbox_unreachable'], /gave no valid response/],
] as const) {
  test(`a host refusal with ${hostCode} is ${expected.join(' ')} and adds no feed row`, async () => {
    const { id } = await api.makeSandbox('ready');
    api.front.stream = () => {
      throw new ExecRefusal(hostCode, 'words of the host');
    };
    const [status, code, said] = await refusal(id, { query: '?port=5432' });
    assert.deepEqual([status, code], expected);
    assert.match(said, message);
    const rows = await api.db.selectFrom('activity').select('kind').where('sandbox_id', '=', id).execute();
    assert.deepEqual(rows, []);
  });
}

test('a tunnel is in the feed with its port and records activity from its opening', async () => {
  const { id } = await api.makeSandbox('ready', { last_active_at: LONG_AGO });
  const heard = await open(id, { query: '?port=3000' });
  const row = await api.db.selectFrom('activity').selectAll().where('sandbox_id', '=', id).executeTakeFirstOrThrow();
  assert.deepEqual([row.kind, row.details], ['sandbox_connected', { port: 3_000 }]);
  const { last_active_at: active } = await api.db
    .selectFrom('sandbox')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  assert.ok(active > LONG_AGO);
  heard.socket.close();
});

test('a browser sends its token as a subprotocol; the response selects ours, without the token', async () => {
  const { id } = await api.makeSandbox('ready');
  const { token } = await api.makeSession({ role: 'member' });
  api.secret(token);
  const protocols = ['berth.v1', `berth.bearer.${token}`];
  const answer = await requestWebSocket(pathOf(id), {}, protocols);
  assert.ok('socket' in answer, JSON.stringify(answer));
  assert.equal(answer.socket.protocol, 'berth.v1');
  assert.ok(!JSON.stringify(answer.headers).includes(token));
  answer.socket.terminate();
  for (const offered of [[`berth.bearer.${token}`], [`berth.bearer.${token}`, 'other']])
    assert.deepEqual((await refusal(id, { headers: {}, protocols: offered })).slice(0, 2), [400, 'invalid_request']);

  assert.equal(
    (await refusal(id, { headers: {}, protocols: ['berth.v1', 'berth.bearer.nonsense'] }))[1],
    'unauthenticated',
  );
  assert.equal((await refusal(id, { headers: {}, protocols: ['berth.v1'] }))[1], 'unauthenticated');
  assert.equal(
    (await refusal(id, { headers: {}, query: `?token=${token}&access_token=${token}` }))[1],
    'unauthenticated',
  );
  assert.deepEqual(
    (await refusal(id, { headers: bearer('brt_wrong_token'), protocols })).slice(0, 2),
    [401, 'unauthenticated'],
    'the header counts',
  );
});

test('a tunnel request without an upgrade is 426; an invalid handshake gets its reason', async () => {
  const { id } = await api.makeSandbox('ready');
  const plain = await fetch(pathOf(id), { headers: bearer(api.token) });
  assert.deepEqual([plain.status, plain.headers.get('upgrade')], [426, 'websocket']);
  assert.equal(errorEnvelope.parse(await plain.json()).error.code, 'upgrade_required');

  const shake = async (changed: Record<string, string>): Promise<[number, string, http.IncomingHttpHeaders]> => {
    const headers = {
      ...bearer(api.token),
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': randomBytes(16).toString('base64'),
      ...changed,
    };
    const asked = http.get(pathOf(id), { headers });
    const [response] = (await once(asked, 'response')) as [http.IncomingMessage];
    const { error } = errorEnvelope.parse(JSON.parse(Buffer.concat((await response.toArray()) as Buffer[]).toString()));
    return [response.statusCode ?? 0, error.code, response.headers];
  };
  const [status, code, headers] = await shake({ 'sec-websocket-version': '8' });
  assert.deepEqual([status, code, headers['sec-websocket-version']], [426, 'upgrade_required', '13']);
  assert.deepEqual((await shake({ 'sec-websocket-key': 'short' })).slice(0, 2), [400, 'invalid_request']);
  for (const offered of ['berth.v1, berth.v1', 'berth.v1,', 'berth v1', 'chat']) {
    assert.deepEqual(
      (await shake({ 'sec-websocket-protocol': offered })).slice(0, 2),
      [400, 'invalid_request'],
      offered,
    );
  }

  // Other protocols are not offered: the upgrade is ignored.
  assert.deepEqual((await shake({ upgrade: 'h2c' })).slice(0, 2), [426, 'upgrade_required']);
  assert.deepEqual(opened, []);
});

test('an upgrade on any other route is ignored', async () => {
  for (const upgrade of ['websocket', 'h2c']) {
    const asked = http.get(`${api.url}/v1/me`, { headers: { ...bearer(api.token), connection: 'Upgrade', upgrade } });
    const [response] = (await once(asked, 'response')) as [http.IncomingMessage];
    assert.equal(response.statusCode, 200);
    assert.equal(JSON.parse(Buffer.concat((await response.toArray()) as Buffer[]).toString()).id, api.userId);
  }
});

test('a tunnel wakes a stopped sandbox if its project allows it, and is 409 otherwise', async () => {
  const project = await insertProject(api.db, {
    id: newId('project'),
    org_id: api.orgId,
    name: 'wakes',
    use_case: 'internal',
    wake_on_use: true,
    created_by: api.userId,
  });
  const { id } = await api.makeSandbox('stopped', { project_id: project.id });
  const opening = open(id);
  await untilTrue('a wake is begun', () =>
    api.steps.some(({ kind, step }) => kind === 'wake' && step.sandboxId === id),
  );
  await api.db.transaction().execute(async (trx) => {
    const now = await lockSandbox(trx, id);
    await transitionSandbox(trx, {
      sandboxId: id,
      epoch: now?.epoch ?? 0,
      to: 'ready',
      actor: SYSTEM,
      wakesFrom: null,
    });
  });
  (await opening).socket.close();

  const other = await api.makeSandbox('stopped');
  assert.deepEqual((await refusal(other.id)).slice(0, 2), [409, 'sandbox_state_conflict']);
});

test('a tunnel closes at once when its sandbox goes to sleep', async () => {
  const { id } = await api.makeSandbox('ready');
  const heard = await open(id);
  const stream = inSandbox();
  await putToSleep(id);
  assert.deepEqual(await heard.closed, { code: 4409, reason: 'sandbox_state_conflict' });
  if (!stream.closed) await once(stream, 'close');
});

const userOf = async (token: string): Promise<string> => (await api.call('GET', '/v1/me', { token })).body.id;
for (const [what, credential, take, expected] of [
  [
    'its key is revoked',
    () => api.makeKey({ role: 'member' }),
    async (token: string) =>
      void (await api.db
        .updateTable('api_key')
        .set({ revoked_at: new Date() })
        .where('created_by', '=', await userOf(token))
        .execute()),
    { code: 4401, reason: 'unauthenticated' },
  ],
  [
    'its session ends',
    async () => (await api.makeSession({ role: 'member' })).token,
    async (token: string) =>
      void (await api.db
        .deleteFrom('session')
        .where('userId', '=', await userOf(token))
        .execute()),
    { code: 4401, reason: 'unauthenticated' },
  ],
  [
    'its session token expires',
    async () => (await api.makeSession({ role: 'member' })).token,
    async (token: string) =>
      void (await api.db
        .updateTable('session_token')
        .set({ expires_at: new Date() })
        .where('user_id', '=', await userOf(token))
        .execute()),
    { code: 4401, reason: 'unauthenticated' },
  ],
  [
    'its holder loses the permission',
    async () => (await api.makeSession({ role: 'member' })).token,
    async (token: string) =>
      void (await api.db
        .updateTable('membership')
        .set({ role: 'viewer' })
        .where('user_id', '=', await userOf(token))
        .execute()),
    { code: 4403, reason: 'permission_denied' },
  ],
  [
    'its holder is removed from the org',
    () => api.makeKey({ role: 'member' }),
    async (token: string) =>
      void (await api.db
        .deleteFrom('membership')
        .where('user_id', '=', await userOf(token))
        .execute()),
    { code: 4403, reason: 'org_access_denied' },
  ],
] as const) {
  test(`a tunnel closes when ${what}`, async () => {
    const { id } = await api.makeSandbox('ready');
    const token = await credential();
    const heard = await open(id, { headers: bearer(token) });
    await take(token);
    assert.deepEqual(await heard.closed, expected);
  });
}

test('a tunnel survives another token of the same user; any other token, or none, closes it', async () => {
  const { id } = await api.makeSandbox('ready');
  const { token, userId } = await api.makeSession({ role: 'member' });
  const heard = await open(id, { headers: bearer(token) });
  const fresh = await signInAs(api.db, userId);
  heard.socket.send(JSON.stringify({ bearer: api.secret(fresh.token) }));
  heard.socket.send(Buffer.from('asked'));
  await heard.until(({ bytes }) => bytes.toString() === 'asked');
  // The second check after the first token's end finds the tunnel open.
  await api.db
    .updateTable('session_token')
    .set({ expires_at: new Date() })
    .where('login_id', '<>', fresh.loginId)
    .where('user_id', '=', userId)
    .execute();
  const asked = await statementsUntil(2, id);
  assert.ok(asked >= 2);
  heard.socket.send(Buffer.from(' again'));
  await heard.until(({ bytes }) => bytes.toString() === 'asked again');
  heard.socket.send(JSON.stringify({ bearer: api.secret(fresh.token) }));
  assert.deepEqual(await heard.closed, { code: 4429, reason: 'rate_limited' });

  for (const other of [(await api.makeSession({ role: 'owner' })).token, 'bst_nonsense_of_a_token']) {
    const tunnel = await open(id, { headers: bearer(fresh.token) });
    tunnel.socket.send(JSON.stringify({ bearer: api.secret(other) }));
    assert.deepEqual(await tunnel.closed, { code: 4401, reason: 'unauthenticated' });
  }
});

/** Resolves after `looks` checks of open connections; changes of the row trigger them. */
async function statementsUntil(looks: number, id: string): Promise<number> {
  let seen = 0;
  const { callers } = api.context;
  const find = callers.findSession.bind(callers);
  callers.findSession = async (hash, sandboxId) => {
    const found = await find(hash, sandboxId);
    if (sandboxId === id) seen += 1;
    return found;
  };
  try {
    await untilTrue('the tunnel is looked at', () => seen >= looks);
  } finally {
    callers.findSession = find;
  }
  return seen;
}

test('invalid frames close a tunnel: unknown text, data after the end, an oversized frame', async () => {
  const { id } = await api.makeSandbox('ready');
  for (const [frames, code] of [
    [['{"resize":{"cols":80,"rows":24}}'], 1003],
    [['no JSON'], 1003],
    [['{"end":false}'], 1003],
    [['{"end":true}', Buffer.from('more')], 1003],
    [[Buffer.alloc(WEBSOCKET.frameBytes + 1)], 1009],
  ] as const) {
    api.front.stream = () => (stream) => void stream.resume();
    const heard = await open(id);
    frames.forEach((frame) => heard.socket.send(frame));
    assert.equal((await heard.closed).code, code, String(frames[0]).slice(0, 40));
  }
});

test('a broken connection to the sandbox closes the tunnel with 1011', async () => {
  const { id } = await api.makeSandbox('ready');
  const heard = await open(id);
  inSandbox().destroy();
  // A unix socket has no reset: this is an end, and later bytes find no reader.
  heard.socket.send(Buffer.from('anybody there?'));
  heard.socket.send(Buffer.from('anybody?'));
  assert.deepEqual(await heard.closed, { code: 1011, reason: 'the connection to the sandbox was lost' });
});

test('a disconnected caller closes its connection to the sandbox', async () => {
  const { id } = await api.makeSandbox('ready');
  const heard = await open(id);
  const stream = inSandbox();
  heard.socket.terminate();
  if (!stream.closed) await once(stream, 'close');
});

test('a caller that stops responding is disconnected', async () => {
  const other = await startApi({ durable: false, bounds: { pingEveryMs: 50 } });
  try {
    const { id } = await other.makeSandbox('ready');
    const closed = Promise.withResolvers<void>();
    other.front.stream = () => (stream) => void stream.once('end', closed.resolve).resume();
    const answer = await requestWebSocket(`${other.url}/v1/sandboxes/${id}/tunnel`, {
      authorization: `Bearer ${other.token}`,
    });
    assert.ok('socket' in answer);
    // The client reads nothing and so sends no pong.
    await closed.promise;
    answer.socket.terminate();
  } finally {
    await other.close();
  }
});

test('a stopping instance closes its tunnels with 1001', async () => {
  const other = await startApi({ durable: false });
  const { id } = await other.makeSandbox('ready');
  const answer = await requestWebSocket(`${other.url}/v1/sandboxes/${id}/tunnel`, {
    authorization: `Bearer ${other.token}`,
  });
  assert.ok('socket' in answer);
  const heard = new RecordingWebSocket(answer.socket);
  await other.close();
  assert.deepEqual(await heard.closed, { code: 1001, reason: 'shutting_down' });
});
