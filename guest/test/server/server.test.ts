// Requests that violate the protocol: the daemon refuses them with a reason and keeps serving.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import { test } from 'node:test';
import { guestError } from '@berth/protocol/guest.ts';
import { startDaemon } from '../daemon.ts';

test('an invalid body is refused with the field and the rule', async (t) => {
  const daemon = await startDaemon(t);
  for (const [path, body, message] of [
    ['/exec', '', /not JSON/],
    ['/exec', '{"command":', /not JSON/],
    ['/exec', 'null', /must be an object/],
    ['/exec', '{}', /command must be a string of 1 to 1048576 characters/],
    ['/exec', '{"command":"true","timeoutSeconds":601}', /timeoutSeconds must be a whole number from 1 to 600/],
    [
      '/exec',
      '{"command":"true","timeoutSeconds":1,"user":"root"}',
      /unknown field "user"; it takes command, timeoutSeconds/,
    ],
    ['/exec', String.raw`{"command":"a\u0000b","timeoutSeconds":1}`, /NUL character/],
    ['/identity', '{}', /sshHostKey must be an object|secret must be/],
    ['/identity', '[]', /must be an object/],
  ] as const) {
    const answer = await daemon.open('POST', path, body).answer;
    assert.equal(answer.status, 400, `${path} ${body}`);
    assert.match(guestError.parse(JSON.parse(answer.text)).error.message, message);
  }
  assert.equal((await daemon.exec('echo alive')).stdout, 'alive\n');
});

test('a body over every limit is refused while it is sent', async (t) => {
  const daemon = await startDaemon(t);
  // Keep-alive, like the host daemon: with `connection: close`, the response would reset the
  // connection while the body is still being sent.
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const body = JSON.stringify({ command: 'x'.repeat(20_000_000), timeoutSeconds: 5 });
  const answer = await daemon.open('POST', '/exec', body, undefined, agent).answer;
  assert.equal(answer.status, 413);
  assert.equal((await daemon.exec('echo alive')).stdout, 'alive\n');
});

test('unknown routes and methods are named in the refusal, with the known ones', async (t) => {
  const daemon = await startDaemon(t);
  for (const [method, path] of [
    ['GET', '/'],
    ['GET', '/exec'],
    ['DELETE', '/identity'],
    ['POST', '/exec/'],
    ['GET', '/__proto__'],
    ['GET', '/constructor'],
  ] as const) {
    const answer = await daemon.call(method, path);
    assert.equal(answer.status, 404);
    assert.match(answer.text, /POST \/exec, POST \/run, GET \/health, POST \/identity/);
  }
});

test('callers that disconnect or speak another protocol leave the server unharmed', async (t) => {
  const daemon = await startDaemon(t);
  for (const bytes of [
    '',
    'POST /exec HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{"command":',
    'POST /identity HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
    '\0\u0001\u0002 not http\r\n\r\n',
    `GET / HTTP/1.1\r\nx: ${'a'.repeat(100_000)}\r\n\r\n`,
    'GET /health HTTP/1.1\r\n\r\n',
  ]) {
    const socket = connect(daemon.port, '127.0.0.1');
    // A reset is as good as a response.
    socket.on('error', () => socket.destroy());
    await once(socket, 'connect');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.end(bytes);
    socket.resume();
    await closed;
  }
  assert.equal((await daemon.exec('echo alive')).stdout, 'alive\n');
});
