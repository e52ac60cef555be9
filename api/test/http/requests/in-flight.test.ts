// Bodies in flight: refused by their length before they are read, per org and per address, and
// given back however the request ends.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, afterEach, before, test } from 'node:test';
import { FILE_LIMITS } from '@berth/contract/route/limits.ts';
import { errorEnvelope } from '@berth/contract/route/errors.ts';
import { LONG_FIELD_COPIES } from '../../../src/http/requests/long-field.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';
import { untilTrue } from '../../../../os/test/until.ts';

const MIB = 1_048_576;
/** An org may take half. */
const LIMIT_MIB = 32;
/** Maximum length of a file that is read. */
const FILE_BYTES = 8 * MIB;
/** Bytes that an exec of the longest body keeps. */
const EXEC_BYTES = 3 * MIB + 65_536;

let api: TestApi;
let path: string;
before(async () => {
  api = await startApi({ durable: false, settings: { bodiesInFlightMib: LIMIT_MIB, trustedProxies: ['127.0.0.1'] } });
  path = `/v1/sandboxes/${(await api.makeSandbox('ready')).id}/exec`;
});
after(() => api.close());

const open: Socket[] = [];
afterEach(async () => {
  for (const socket of open.splice(0)) socket.destroy();
  await untilTrue('all bytes are given back', () => api.calls.inFlight.held === 0);
});

interface Sent {
  target: string;
  token?: string | null;
  from?: string;
  bytes: number;
  type?: string;
}

/** Sends the head of a request and a part of its body. */
function send({ target, token = null, from = '192.0.2.1', bytes, type = 'application/json' }: Sent): {
  socket: Socket;
  answer: () => string;
} {
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
  open.push(socket);
  let answer = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
  socket.on('error', () => undefined);
  const authorization = token === null ? '' : `authorization: Bearer ${token}\r\n`;
  socket.write(
    `POST ${target} HTTP/1.1\r\nhost: x\r\nx-forwarded-for: ${from}\r\n${authorization}` +
      `content-type: ${type}\r\ncontent-length: ${bytes}\r\n\r\n{"command":"`,
  );
  return { socket, answer: () => answer };
}

/** Sends an exec whose command may be this long. */
async function hold(bytes: number): Promise<void> {
  const before = api.calls.inFlight.held;
  send({ target: path, token: api.token, bytes });
  await untilTrue('the bytes are held', () => api.calls.inFlight.held === before + LONG_FIELD_COPIES * bytes);
}

/** Holds the org's share but for this many bytes, and at most two more. */
async function fillShare(leftBytes = 0): Promise<void> {
  let free = Math.floor(((LIMIT_MIB / 2) * MIB - leftBytes) / LONG_FIELD_COPIES);
  for (; free > 0; free -= EXEC_BYTES) await hold(Math.min(free, EXEC_BYTES));
}

/** The error code of a response to a request whose body never arrives. */
async function codeOf(sent: Sent): Promise<{ code: string; head: string }> {
  const { answer } = send(sent);
  await untilTrue('a response', () => /\r\n\r\n\{.*\}$/s.test(answer()));
  const [head = '', body = ''] = answer().split('\r\n\r\n');
  return { code: errorEnvelope.parse(JSON.parse(body)).error.code, head };
}

test('an org that holds its share gets 429 too_much_in_flight before its body is read; others continue', async () => {
  const other = await api.makeOrg();
  await fillShare();
  const { code, head } = await codeOf({ target: path, token: await api.makeKey({}), from: '192.0.2.7', bytes: 100 });
  assert.equal(code, 'too_much_in_flight');
  assert.match(head, /^HTTP\/1\.1 429 [\s\S]*\r\nretry-after: 1\r\n/i);
  const made = await api.call('POST', `/v1/orgs/${other.orgId}/projects`, { token: other.token, body: { name: 'x' } });
  assert.equal(made.status, 201);
  // Reads have no body.
  assert.equal((await api.call('GET', path.replace('/exec', ''))).status, 200);
});

test('bytes are given back after a response, a refusal, and a disconnect', async () => {
  const result = { exitCode: 0, stdout: '', stderr: '', truncated: false, timedOut: false };
  api.front.exec = () => Promise.resolve(result);
  const run = (body: unknown): Promise<Answer> => api.call('POST', path, { body });
  assert.equal((await run({ command: 'x'.repeat(100_000) })).status, 200);
  assert.equal((await run({ command: 7 })).status, 400);
  assert.equal(api.calls.inFlight.held, 0);
  await hold(EXEC_BYTES);
  open.splice(0).forEach((socket) => socket.destroy());
  await untilTrue('all bytes are given back', () => api.calls.inFlight.held === 0);
});

test('a body without a length counts as it arrives', async () => {
  await fillShare(65_536);
  const pieces = new ReadableStream({
    start: (stream) => {
      for (let piece = 0; piece < 20; piece += 1) stream.enqueue(new Uint8Array(8_192).fill(0x20));
      stream.close();
    },
  });
  const response = await fetch(`${api.url}/v1/orgs/${api.orgId}/projects`, {
    method: 'POST',
    headers: { authorization: `Bearer ${api.token}`, 'content-type': 'application/json' },
    body: pieces,
    duplex: 'half',
  });
  assert.equal(errorEnvelope.parse(await response.json()).error.code, 'too_much_in_flight');
});

test('a file write counts for the text it keeps, not for its JSON', async () => {
  const target = path.replace('/exec', '/file');
  const body = `PUT ${target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${api.token}\r\n`;
  const writing = connect(Number(new URL(api.url).port), '127.0.0.1');
  open.push(writing);
  writing.write(`${body}content-type: application/json\r\ncontent-length: 16000000\r\n\r\n{"path":"f","content":"`);
  const text = LONG_FIELD_COPIES * (FILE_LIMITS.contentCharacters + 65_536);
  await untilTrue('the text is held', () => api.calls.inFlight.held === text);
});

test('a file write counts its text and its bytes while the host writes', async () => {
  const bytes = 600_000;
  const { promise: written, resolve: finish } = Promise.withResolvers<object>();
  api.front.files = () => written;
  const content = Buffer.alloc(bytes, 7).toString('base64');
  const escaped = content.replaceAll(
    /./g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  const writing = api.call('PUT', path.replace('/exec', '/file'), {
    rawBody: `{"path":"f","encoding":"base64","content":"${escaped}"}`,
  });
  // The text counts as long as it may be by its declared length.
  const text = LONG_FIELD_COPIES * (FILE_LIMITS.contentCharacters + 65_536);
  await untilTrue('both are held', () => api.calls.inFlight.held === text + bytes);
  finish({ size: bytes });
  const { status, body } = await writing;
  assert.deepEqual([status, body.size, body.sha256.slice(0, 8)], [200, bytes, 'b8414ecc']);
  assert.equal(api.calls.inFlight.held, 0);
});

test('a file read counts until its response is sent; another org reads meanwhile', async () => {
  const other = await api.makeOrg();
  const mine = path.replace('/exec', '/file?path=f');
  api.front.files = ({ verb }) => (verb === 'read' ? Buffer.alloc(FILE_BYTES) : Buffer.alloc(0));
  const slow = connect(Number(new URL(api.url).port), '127.0.0.1');
  open.push(slow);
  slow.pause();
  slow.write(`GET ${mine} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${api.token}\r\n\r\n`);
  await untilTrue('the file is held', () => api.calls.inFlight.held === 2 * FILE_BYTES);
  assert.equal((await api.call('GET', mine)).body.error.code, 'too_much_in_flight');
  api.front.files = () => Buffer.from('small');
  assert.equal((await api.call('GET', mine)).status, 429);
  const { id } = await api.makeSandbox('ready', { org_id: other.orgId, project_id: other.projectId });
  const read = await api.call('GET', `/v1/sandboxes/${id}/file?path=f`, { token: other.token });
  assert.deepEqual([read.status, read.body.content], [200, 'small']);
  slow.resume();
  await untilTrue('the file is sent', () => api.calls.inFlight.held === 0);
  assert.equal((await api.call('GET', mine)).status, 200);
});

test('a file read by an MCP tool counts until its response is sent', async () => {
  // The request itself counts too.
  const fileBytes = FILE_BYTES - MIB;
  const [sandboxId = ''] = /sbx_\w+/.exec(path) ?? [];
  api.front.files = ({ verb }) => (verb === 'read' ? Buffer.alloc(fileBytes) : Buffer.alloc(0));
  const params = { name: 'read_file', arguments: { sandbox_id: sandboxId, path: 'f' } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const slow = connect(Number(new URL(api.url).port), '127.0.0.1');
  open.push(slow);
  slow.write(
    `POST /v1/mcp?toolsets=sandboxes HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${api.token}\r\n` +
      'content-type: application/json\r\n' +
      `content-length: ${body.length}\r\n\r\n${body}`,
  );
  const [head] = (await once(slow, 'data')) as [Buffer];
  slow.pause();
  assert.match(head.toString('latin1', 0, 200), /^HTTP\/1.1 200/);
  assert.ok(api.calls.inFlight.held >= 2 * fileBytes);
  assert.equal((await api.call('GET', path.replace('/exec', '/file?path=f'))).body.error.code, 'too_much_in_flight');
  api.front.files = () => Buffer.from('small');
  slow.resume();
  await untilTrue('the file is sent', () => api.calls.inFlight.held === 0);
});

test('forms of an address are limited; another address signs in', async () => {
  const form = { target: '/sign-in', type: 'application/x-www-form-urlencoded', bytes: 16_384 };
  const before = api.calls.inFlight.held;
  for (let count = 0; count < 1_024; count += 1) send(form);
  await untilTrue('the bytes are held', () => api.calls.inFlight.held === before + (LIMIT_MIB / 2) * MIB);
  const { socket, answer } = send(form);
  await once(socket, 'data');
  assert.match(answer(), /^HTTP\/1\.1 429 [\s\S]*\r\nretry-after: 1\r\n/i);
  const { answer: oauth } = send({ ...form, target: '/auth/token' });
  await untilTrue('a response', () => oauth().endsWith('}'));
  assert.match(oauth(), /^HTTP\/1\.1 429 /);
  send({ ...form, from: '192.0.2.2' });
  await untilTrue('the bytes are held', () => api.calls.inFlight.held === before + (LIMIT_MIB / 2) * MIB + form.bytes);
});

for (const [name, target, code] of [
  ['without a token', '/v1/orgs/org_aaaaaaaaaaaaaaaaaaaaaaaa/projects', 'unauthenticated'],
  ['to an unknown path', '/nowhere', 'route_not_found'],
  ['with a method that the path lacks', '/health', 'method_not_allowed'],
  ['to the payment webhook without a signature', '/billing/stripe', 'signature_invalid'],
] as const) {
  test(`a body ${name} is refused before it is read`, async () => {
    assert.equal((await codeOf({ target, bytes: 200_000 })).code, code);
    assert.equal(api.calls.inFlight.held, 0);
  });
}

test('the payment webhook is refused before its body is read while payments are off', async () => {
  const { payments } = api.context;
  api.context.payments = null;
  try {
    assert.equal((await codeOf({ target: '/billing/stripe', bytes: 200_000 })).code, 'billing_not_configured');
  } finally {
    api.context.payments = payments;
  }
});
