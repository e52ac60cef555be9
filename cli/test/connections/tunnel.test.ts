// `berth tunnel` against a fake API.
import assert from 'node:assert/strict';
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { ApiServer, refusal, TOKEN } from '../world/api-server.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');

let api: ApiServer;
const children = new Set<ChildProcessWithoutNullStreams>();

before(async () => {
  api = await ApiServer.start();
});
after(() => api.close());
afterEach(() => {
  api.refuse = null;
  children.forEach((child) => child.kill('SIGKILL'));
  children.clear();
});

interface Ended {
  code: number | null;
  stdout: Buffer;
  stderr: string;
}

function start(
  args: readonly string[],
  env: Record<string, string> = {},
): { child: ChildProcessWithoutNullStreams; ended: Promise<Ended> } {
  const child = spawn(process.execPath, [MAIN, 'tunnel', ...args], {
    env: { ...api.environment, ...env },
  });
  children.add(child);
  const stdout: Buffer[] = [];
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  child.stdin.on('error', () => undefined);
  const ended = once(child, 'close').then(([code]) => ({
    code: code as number | null,
    stdout: Buffer.concat(stdout),
    stderr,
  }));
  return { child, ended };
}

/** Reads all input before it replies. */
function afterAll(say: (sent: Buffer) => Buffer): ApiServer['answer'] {
  return (socket) => {
    const sent: Buffer[] = [];
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) {
        sent.push(data);
        return;
      }
      assert.deepEqual(JSON.parse(data.toString()), { end: true });
      socket.send(say(Buffer.concat(sent)), { binary: true });
      socket.send(JSON.stringify({ end: true }));
      socket.close(1000);
    });
  };
}

test('stdin goes to the port and its data to stdout only; half-close is forwarded', async () => {
  let seen: unknown;
  const sent = randomBytes(8_000_000);
  const echo = afterAll((bytes) => bytes);
  api.answer = (socket, request) => {
    seen = [request.url, request.headers.authorization, request.headers['sec-websocket-protocol']];
    echo(socket, request);
  };
  const { child, ended } = start(['sbx_abcabcabcabcabcabcabcabc', '--port', '8080']);
  child.stdin.end(sent);
  const { code, stdout, stderr } = await ended;
  assert.deepEqual([code, stderr], [0, '']);
  const sum = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
  assert.equal(sum(stdout), sum(sent));
  assert.deepEqual(seen, [
    '/v1/sandboxes/sbx_abcabcabcabcabcabcabcabc/tunnel?port=8080',
    `Bearer ${TOKEN}`,
    'berth.v1',
  ]);
});

test('the port defaults to 22, and a path of the URL is kept', async () => {
  let asked: string | undefined;
  const nothing = afterAll(() => Buffer.alloc(0));
  api.answer = (socket, request) => {
    asked = request.url;
    nothing(socket, request);
  };
  const { child, ended } = start(['sbx_abcabcabcabcabcabcabcabc'], { BERTH_URL: `${api.url}/behind/` });
  child.stdin.end();
  assert.equal((await ended).code, 0);
  assert.equal(asked, '/behind/v1/sandboxes/sbx_abcabcabcabcabcabcabcabc/tunnel?port=22');
});

test('tunnel exits when the sandbox closes its side, even with open stdin', async () => {
  api.answer = (socket) => {
    socket.send(Buffer.from('bye'));
    socket.send(JSON.stringify({ end: true }));
    socket.on('message', (_data, isBinary) => {
      if (!isBinary) socket.close(1000);
    });
  };
  const { code, stdout } = await start(['sbx_abcabcabcabcabcabcabcabc']).ended;
  assert.deepEqual([code, stdout.toString()], [0, 'bye']);
});

test('a tunnel closed for a reason fails with the reason', async () => {
  api.answer = (socket) => socket.close(4409, 'sandbox_state_conflict');
  const { code, stderr } = await start(['sbx_abcabcabcabcabcabcabcabc']).ended;
  assert.deepEqual(
    [code, stderr],
    [
      1,
      'berth: the tunnel was closed: the sandbox is no longer awake (sandbox_state_conflict)\n' +
        '  wait with berth sandbox wait, or wake the sandbox with berth sandbox wake\n',
    ],
  );
});

test("a refusal is printed with the API's message", async () => {
  api.refuse = refusal(502, 'port_refused', 'nothing listens on port 22 of the sandbox');
  assert.equal(
    (await start(['sbx_abcabcabcabcabcabcabcabc']).ended).stderr,
    'berth: nothing listens on port 22 of the sandbox (port_refused)\n' +
      '  start a server that listens on this port of the sandbox\n',
  );
  api.refuse = { status: 404, body: '<html>' };
  assert.match(
    (await start(['sbx_abcabcabcabcabcabcabcabc']).ended).stderr,
    /unexpected response with status 404, not from a Berth service \(invalid_answer\)\n {2}check the URL of the API: --url, BERTH_URL or the profile/,
  );
});

for (const [what, args, env, expected, words] of [
  ['no key', ['sbx_abcabcabcabcabcabcabcabc'], { BERTH_API_KEY: '' }, 4, /^berth: not signed in\n.*BERTH_API_KEY/],
  [
    'a URL that is none',
    ['sbx_abcabcabcabcabcabcabcabc'],
    { BERTH_URL: 'ftp://x' },
    2,
    /BERTH_URL 'ftp:\/\/x' is invalid/,
  ],
  [
    'a server that is not there',
    ['sbx_abcabcabcabcabcabcabcabc'],
    { BERTH_URL: 'http://127.0.0.1:10' },
    1,
    /cannot connect to/,
  ],
  [
    'a port that is none',
    ['sbx_abcabcabcabcabcabcabcabc', '--port', 'ssh'],
    {},
    2,
    /argument 'ssh' is invalid. It must be a whole number from 1 to 65535/,
  ],
  ['no sandbox', [], {}, 2, /missing required argument 'sandbox'/],
] as const) {
  test(`${what} is reported with exit code ${expected}`, async () => {
    const { code, stderr, stdout } = await start(args, env).ended;
    assert.deepEqual([code, stdout.toString()], [expected, '']);
    assert.match(stderr, words);
    assert.ok(!stderr.includes(TOKEN));
  });
}

test('SIGINT interrupts the tunnel', async () => {
  const opened = Promise.withResolvers<void>();
  api.answer = () => opened.resolve();
  const { child, ended } = start(['sbx_abcabcabcabcabcabcabcabc']);
  await opened.promise;
  child.kill('SIGINT');
  assert.equal((await ended).code, 130);
});
