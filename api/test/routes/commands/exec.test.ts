// Commands over HTTP with a scripted host: the API's part of exec.
import assert from 'node:assert/strict';
import http from 'node:http';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { COMMAND_OPTION_LIMITS } from '@berth/contract/route/command-options.ts';
import { EXEC_LIMITS } from '@berth/contract/route/limits.ts';
import { guestExecRequest, guestRunRequest } from '@berth/protocol/calls/exec.ts';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';

/** Long enough for normal responses: after early headers a failure has no separate status. */
const KEEP_ALIVE = { headersAfter: 2_000, spaceEvery: 50 };
const RESULT = { exitCode: 0, stdout: 'héllo\n', stderr: '', truncated: false, timedOut: false };

let api: TestApi;
let sandboxId: string;
before(async () => {
  api = await startApi({ durable: false, bounds: { keepAlive: KEEP_ALIVE } });
  sandboxId = (await api.makeSandbox('ready')).id;
});
after(() => api.close());

const exec = (body: object): Promise<Answer> => api.call('POST', `/v1/sandboxes/${sandboxId}/exec`, { body });

/** Returns the raw response: time of its headers and end of its body. */
async function execRaw(
  signal?: AbortSignal,
  prefer?: string,
): Promise<{ response: http.IncomingMessage; body: Promise<{ text: string; whole: boolean }> }> {
  const payload = JSON.stringify({ command: 'slow' });
  const request = http.request(`${api.url}/v1/sandboxes/${sandboxId}/exec`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${api.token}`,
      'content-type': 'application/json',
      'content-length': payload.length,
      ...(prefer === undefined ? {} : { prefer }),
    },
    ...(signal === undefined ? {} : { signal }),
  });
  request.end(payload);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  const chunks: Buffer[] = [];
  response.on('data', (chunk: Buffer) => chunks.push(chunk));
  const body = new Promise<{ text: string; whole: boolean }>((resolve) => {
    const settle = (): void => resolve({ text: Buffer.concat(chunks).toString(), whole: response.complete });
    response.on('error', settle);
    response.on('close', settle);
  });
  return { response, body };
}

test('the guest accepts the longest command of the contract', () => {
  assert.ok(
    guestExecRequest.safeParse({ command: 'x'.repeat(EXEC_LIMITS.commandCharacters), timeoutSeconds: 1 }).success,
  );
});

test('the guest accepts the longest options of the contract', async () => {
  let seen: unknown;
  api.front.exec = (request) => {
    seen = request;
    return Promise.resolve(RESULT);
  };
  const { cwdCharacters, stdinCharacters, env } = COMMAND_OPTION_LIMITS;
  const names = Array.from({ length: env.variables }, (_, index) => `V${String(index).padStart(3, '0')}`);
  const value = '\u0001'.repeat(env.characters / env.variables - 4);
  const options = {
    cwd: `/${'é'.repeat(cwdCharacters - 1)}`,
    env: Object.fromEntries(names.map((name) => [name, value])),
    user: 'u'.repeat(32),
    stdin: '\u0001'.repeat(stdinCharacters),
  };
  const answer = await exec({ command: 'x', ...options });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  const list = names.map((name) => `${name}=${value}`);
  assert.deepEqual(seen, { command: 'x', timeoutSeconds: 120, ...options, env: list });
  assert.equal(guestRunRequest.safeParse(seen).success, true);
});

test('an invalid option is 400 and names its field', async () => {
  api.front.exec = () => Promise.resolve(RESULT);
  const { cwdCharacters, stdinCharacters, env } = COMMAND_OPTION_LIMITS;
  const many = Object.fromEntries(Array.from({ length: env.variables + 1 }, (_, index) => [`V${index}`, '']));
  for (const [option, field] of [
    [{ cwd: '' }, 'cwd'],
    [{ cwd: 'a\0b' }, 'cwd'],
    [{ cwd: 'x'.repeat(cwdCharacters + 1) }, 'cwd'],
    [{ cwd: null }, 'cwd'],
    [{ env: { 'A-B': 'x' } }, 'env'],
    [{ env: { '1A': 'x' } }, 'env'],
    [{ env: { '': 'x' } }, 'env'],
    [{ env: { A: 'a\0b' } }, 'env'],
    [{ env: { A: 1 } }, 'env'],
    [{ env: { A: 'x'.repeat(env.characters) } }, 'env'],
    [{ env: many }, 'env'],
    [{ env: ['A=x'] }, 'env'],
    [{ user: '' }, 'user'],
    [{ user: 'a b' }, 'user'],
    [{ user: '0' }, 'user'],
    [{ user: 'x'.repeat(33) }, 'user'],
    [{ stdin: 'x'.repeat(stdinCharacters + 1) }, 'stdin'],
    [{ stdin: 'a\0b' }, 'stdin'],
  ] as const) {
    const { status, body } = await exec({ command: 'x', ...option });
    assert.equal(status, 400, JSON.stringify(option).slice(0, 80));
    assert.match(body.error.message, new RegExp(`^body\\.${field}`), body.error.message);
  }
});

test('a directory or user that the sandbox lacks is 400 for its field, an older guest 409 with a way out', async () => {
  for (const [code, status, field, message] of [
    ['command_cwd_invalid', 400, 'body.cwd', /"\/nowhere" is none/],
    ['command_user_unknown', 400, 'body.user', /no "nobody-here"/],
    ['exec_options_unsupported', 409, undefined, /cd DIR && NAME=VALUE COMMAND/],
  ] as const) {
    api.front.exec = () => Promise.reject(new ExecRefusal(code, "the guest's words"));
    const answer = await exec({ command: 'x', cwd: '/nowhere', user: 'nobody-here' });
    assert.equal(answer.status, status);
    assert.equal(answer.body.error.field, field);
    assert.match(answer.body.error.message, message);
    assert.doesNotMatch(answer.body.error.message, /guest's words/);
  }
});

test('a result is returned unchanged, with any exit code', async () => {
  for (const result of [
    RESULT,
    { ...RESULT, exitCode: 3, stderr: 'no' },
    { ...RESULT, exitCode: 124, timedOut: true, truncated: true },
  ]) {
    api.front.exec = () => Promise.resolve(result);
    const answer = await exec({ command: 'run' });
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.body, result);
  }
});

test('the timeout defaults to 120 s; 1 and 600 are accepted; 0, 601, 1.5 and text are 400', async () => {
  const seen: number[] = [];
  api.front.exec = ({ timeoutSeconds }) => {
    seen.push(timeoutSeconds);
    return Promise.resolve(RESULT);
  };
  await exec({ command: 'x' });
  await exec({ command: 'x', timeoutSeconds: 1 });
  await exec({ command: 'x', timeoutSeconds: 600 });
  assert.deepEqual(seen, [120, 1, 600]);
  for (const timeoutSeconds of [0, 601, 1.5, '60', null, -1, 1e12]) {
    const answer = await exec({ command: 'x', timeoutSeconds });
    assert.equal(answer.status, 400);
    assert.match(answer.body.error.message, /^body\.timeoutSeconds /);
  }
  assert.equal(seen.length, 3);
});

test('a command is a string of 1 to 1,048,576 characters without NUL', async () => {
  api.front.exec = () => Promise.resolve(RESULT);
  assert.equal((await exec({ command: 'x'.repeat(1_048_576) })).status, 200);
  for (const command of ['', 'a\0b', 'x'.repeat(1_048_577), 7, undefined])
    assert.equal((await exec({ command })).status, 400);
});

test('a silent VM is 503 sandbox_unreachable, a silent host 503 host_unavailable, with Retry-After', async () => {
  for (const [failure, code] of [
    [new ExecRefusal('guest_unreachable', 'no'), 'sandbox_unreachable'],
    [new ExecRefusal('vm_not_running', 'no'), 'sandbox_unreachable'],
    [new ExecRefusal('unauthorized', 'no'), 'host_unavailable'],
  ] as const) {
    api.front.exec = () => Promise.reject(failure);
    const answer = await exec({ command: 'x' });
    assert.equal(answer.status, 503);
    assert.equal(answer.body.error.code, code);
    assert.match(answer.headers.get('retry-after') ?? '', /^\d+$/);
  }
  api.front.exec = () => Promise.resolve({ exitCode: 'zero' });
  assert.equal((await exec({ command: 'x' })).body.error.code, 'host_unavailable');
});

test('a sandbox destroyed during its command is 409 naming the status, not a host failure', async () => {
  const { id } = await api.makeSandbox('ready');
  api.front.exec = async () => {
    await api.call('POST', `/v1/sandboxes/${id}/destroy`, { headers: { prefer: 'respond-async' } });
    throw new ExecRefusal('vm_not_found', 'gone');
  };
  const answer = await api.call('POST', `/v1/sandboxes/${id}/exec`, { body: { command: 'x' } });
  assert.equal(answer.status, 409);
  assert.match(answer.body.error.message, /destroying/);
});

test("a host bug is 500 with the request id and without the bug's message", async () => {
  api.front.exec = () => Promise.reject(new Error('a secret path'));
  const answer = await exec({ command: 'x' });
  assert.equal(answer.status, 500);
  assert.equal(answer.body.error.code, 'internal');
  assert.ok(answer.body.error.message.includes(answer.headers.get('x-request-id')));
  assert.doesNotMatch(answer.body.error.message, /secret/);
});

test('a fast result has a Content-Length and no leading white space', async () => {
  api.front.exec = () => Promise.resolve(RESULT);
  const { response, body } = await execRaw();
  assert.ok(response.headers['content-length'] !== undefined);
  assert.equal((await body).text, JSON.stringify(RESULT));
});

test('a slow command gets early headers, white space while it runs, and then a JSON body', async () => {
  const finish = Promise.withResolvers<typeof RESULT>();
  api.front.exec = () => finish.promise;
  const { response, body } = await execRaw();
  assert.equal(response.statusCode, 200);
  assert.match(response.headers['x-request-id'] as string, /^req_/);
  assert.equal(response.headers['transfer-encoding'], 'chunked');
  let spaces = 0;
  for await (const chunk of response.iterator({ destroyOnReturn: false })) {
    spaces += String(chunk).length;
    if (spaces >= 3) break;
  }
  finish.resolve(RESULT);
  const { text, whole } = await body;
  assert.equal(whole, true);
  assert.match(text, /^ {3}/);
  assert.deepEqual(JSON.parse(text), RESULT);
});

test('a slow failed command breaks the connection after the error envelope', async () => {
  const finish = Promise.withResolvers<never>();
  api.front.exec = () => finish.promise;
  const { response, body } = await execRaw();
  assert.equal(response.statusCode, 200);
  finish.reject(new ExecRefusal('guest_unreachable', 'no'));
  const { text, whole } = await body;
  assert.equal(whole, false);
  assert.match(text, /^ +{/);
  assert.equal(JSON.parse(text).error.code, 'sandbox_unreachable');
});

test('a plain fetch and a client of HTTP/1.0 cannot take a slow failed command for a success', async () => {
  let finish = Promise.withResolvers<never>();
  api.front.exec = () => finish.promise;
  const url = `${api.url}/v1/sandboxes/${sandboxId}/exec`;
  const headers = { authorization: `Bearer ${api.token}`, 'content-type': 'application/json' };
  const body = '{"command":"slow"}';
  const response = await fetch(url, { method: 'POST', headers, body });
  assert.equal(response.status, 200);
  finish.reject(new ExecRefusal('guest_unreachable', 'no'));
  await assert.rejects(response.json(), /terminated/);

  finish = Promise.withResolvers();
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const lines = Object.entries({ ...headers, 'content-length': body.length }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  socket.write(`POST ${new URL(url).pathname} HTTP/1.0\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
  const [head] = (await once(socket, 'data')) as [Buffer];
  assert.match(head.toString(), /^HTTP\/1\.1 200 OK\r\n/);
  const failed = once(socket.resume(), 'end');
  finish.reject(new ExecRefusal('guest_unreachable', 'no'));
  await assert.rejects(failed, { code: 'ECONNRESET' });
});

test('a caller that declares its wait gets the real status of a slow failed command', async () => {
  const finish = Promise.withResolvers<never>();
  api.front.exec = () => finish.promise;
  let held = true;
  const waiting = execRaw(undefined, 'respond-async, wait=999999');
  void waiting.then(() => (held = false));
  const other = await execRaw();
  assert.equal(held, true, 'a later call without a preference has its headers first');
  finish.reject(new ExecRefusal('guest_unreachable', 'no'));
  const { response, body } = await waiting;
  assert.deepEqual([response.statusCode, response.headers['preference-applied']], [503, 'wait=660']);
  assert.equal(JSON.parse((await body).text).error.code, 'sandbox_unreachable');
  await other.body;
});

test('an invalid wait is ignored', async () => {
  const finish = Promise.withResolvers<typeof RESULT>();
  api.front.exec = () => finish.promise;
  for (const prefer of ['wait', 'wait=0', 'wait=-5', 'wait=1.5', 'wait=x', 'wait=99999999999']) {
    const { response } = await execRaw(undefined, prefer);
    assert.equal(response.headers['preference-applied'], undefined, prefer);
    response.destroy();
  }
});

test('a disconnecting caller ends the command, before and after the early headers', async () => {
  for (const early of [false, true]) {
    const started = Promise.withResolvers<AbortSignal>();
    api.front.exec = (_request, signal) => {
      started.resolve(signal);
      return new Promise(() => undefined);
    };
    const gone = new AbortController();
    const raw = execRaw(gone.signal);
    raw.catch(() => undefined);
    const signal = await started.promise;
    if (early) await raw;
    const ended = once(signal, 'abort');
    gone.abort();
    await ended;
  }
});

test('fifty concurrent commands in one sandbox each get their own result', async () => {
  api.front.exec = async ({ command }) => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    return { ...RESULT, stdout: command };
  };
  const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => exec({ command: `echo ${index}` })));
  assert.deepEqual(
    answers.map((answer) => answer.body.stdout),
    answers.map((_, index) => `echo ${index}`),
  );
});

test('an exec adds a feed row with its timeout, without command or output', async () => {
  const { id } = await api.makeSandbox('running');
  api.front.exec = () => Promise.resolve({ ...RESULT, stdout: 'a-secret-output' });
  await api.call('POST', `/v1/sandboxes/${id}/exec`, { body: { command: 'echo a-secret-command', timeoutSeconds: 7 } });
  const rows = await api.db.selectFrom('activity').selectAll().where('sandbox_id', '=', id).execute();
  assert.deepEqual(
    rows.map((row) => [row.kind, row.details]),
    [['sandbox_exec', { timeoutSeconds: 7 }]],
  );
});
