// `berth shell` in a terminal, against a fake API.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import type { WebSocket } from 'ws';
import { PseudoTerminal } from '../../../os/test/pseudo-terminal.ts';
import { ApiServer, refusal, TOKEN } from '../world/api-server.ts';
import { untilTrue } from '../../../os/test/until.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');

/** Server end of a terminal: its request and received frames. */
interface Remote {
  asked: unknown[];
  socket: WebSocket;
  typed: Buffer;
  orders: unknown[];
  closed: boolean;
}

let api: ApiServer;
let screen: PseudoTerminal;
before(async () => {
  api = await ApiServer.start();
});
after(() => api.close());
afterEach(() => {
  api.refuse = null;
  screen.hangUp();
});

/** Starts a program in a terminal; resolves when a shell in it is connected. */
async function startShell(program: string, args: readonly string[]): Promise<Remote> {
  const { promise, resolve } = Promise.withResolvers<Remote>();
  api.answer = (socket, { url, headers }) => {
    const remote: Remote = {
      asked: [url, headers.authorization],
      socket,
      typed: Buffer.alloc(0),
      orders: [],
      closed: false,
    };
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) remote.typed = Buffer.concat([remote.typed, data]);
      else remote.orders.push(JSON.parse(data.toString()));
    });
    socket.once('close', () => (remote.closed = true));
    resolve(remote);
  };
  screen = new PseudoTerminal(program, args, api.environment);
  const remote = await promise;
  // The first order shows that raw mode is set.
  await untilTrue('the first size comes', () => remote.orders.length > 0);
  return remote;
}

test('shell sends keys, Ctrl-C and split characters unchanged, shows output and returns the exit code', async () => {
  const remote = await startShell(process.execPath, [MAIN, 'shell', 'sbx_abcabcabcabcabcabcabcabc']);
  assert.match(String(remote.asked[0]), /^\/v1\/sandboxes\/sbx_abcabcabcabcabcabcabcabc\/terminal\?cols=\d+&rows=\d+$/);
  assert.equal(remote.asked[1], `Bearer ${TOKEN}`);
  const shown = Buffer.from('grüße\n日本語\r\n\u001b[31m$ ');
  for (const byte of shown) remote.socket.send(Buffer.from([byte]));
  await screen.shows('grüße\n日本語\r\n\u001b[31m$ ');
  const keys = Buffer.from('é\r\x03\x1a\x04\x1b[A💡');
  for (const byte of keys) screen.type(Buffer.from([byte]));
  await untilTrue('the keys arrive', () => remote.typed.length >= keys.length);
  assert.deepEqual(remote.typed, keys);
  assert.ok(!screen.text.includes('💡'), 'what is typed is shown by the other terminal alone');
  remote.socket.send(JSON.stringify({ exit: 42 }));
  remote.socket.close(1000);
  assert.equal(await screen.ended(), 42);
});

test('the window size is sent at the start and on each change, within its limit', async () => {
  const remote = await startShell(process.execPath, [MAIN, 'shell', 'sbx_abcabcabcabcabcabcabcabc']);
  const last = (): string => JSON.stringify(remote.orders.at(-1));
  await screen.resize(33, 101);
  await untilTrue('the new size comes', () => last() === '{"resize":{"cols":101,"rows":33}}');
  await screen.resize(5_000, 5_000);
  await untilTrue('the largest size comes', () => last() === '{"resize":{"cols":1000,"rows":1000}}');
});

for (const [what, end, code, said] of [
  [
    'its sandbox falls asleep',
    (remote: Remote) => remote.socket.close(4409, 'sandbox_state_conflict'),
    1,
    /berth: the terminal was closed: the sandbox is no longer awake \(sandbox_state_conflict\)/,
  ],
  [
    'its key is revoked',
    (remote: Remote) => remote.socket.close(4401, 'unauthenticated'),
    1,
    /closed: the API key was revoked or has expired \(unauthenticated\)/,
  ],
  [
    'the connection breaks',
    (remote: Remote) => remote.socket.terminate(),
    1,
    /closed: the connection to the server was lost/,
  ],
  [
    'it ends without an exit code',
    (remote: Remote) => remote.socket.close(1000),
    1,
    /the terminal was closed: the server closed the connection/,
  ],
  ['it is told to end', async () => process.kill(await programIn(screen), 'SIGTERM'), 143, /berth: stopped by SIGTERM/],
] as const) {
  test(`when ${what}, shell reports it and restores the terminal`, async () => {
    const remote = await startShell('/bin/sh', [
      '-c',
      `stty -a > /dev/stderr; echo before; '${process.execPath}' '${MAIN}' shell sbx_abcabcabcabcabcabcabcabc; ` +
        'echo it gave $?; stty -a',
    ]);
    const settings = screen.text.slice(0, screen.text.indexOf('before'));
    assert.match(settings, /(?<!-)icanon/);
    assert.match(await screen.settings(), /-icanon/);
    await end(remote);
    await screen.shows(said);
    const [ended] = await screen.shows(/it gave \d+\r\n/);
    assert.match(ended, new RegExp(`^it gave ${code}\\r\\n`));
    await screen.ended();
    assert.ok(screen.text.endsWith(settings), screen.text);
    await untilTrue('the other terminal is hung up', () => remote.closed);
  });
}

test('a closed local terminal hangs up the remote one', async () => {
  const remote = await startShell(process.execPath, [MAIN, 'shell', 'sbx_abcabcabcabcabcabcabcabc']);
  screen.hangUp();
  await untilTrue('it is closed', () => remote.closed);
});

test("a refusal is printed with the API's message and exit code 1", async () => {
  api.refuse = refusal(404, 'sandbox_not_found', 'there is no sandbox sbx_abcabcabcabcabcabcabcabc');
  screen = new PseudoTerminal(process.execPath, [MAIN, 'shell', 'sbx_abcabcabcabcabcabcabcabc'], api.environment);
  assert.equal(await screen.ended(), 1);
  assert.equal(
    screen.text,
    'berth: there is no sandbox sbx_abcabcabcabcabcabcabcabc (sandbox_not_found)\r\n' +
      '  use the id of a sandbox that berth sandbox ls lists\r\n',
  );
});

test('without a terminal shell names the command to use instead', () => {
  const { status, stderr } = spawnSync(process.execPath, [MAIN, 'shell', 'sbx_abcabcabcabcabcabcabcabc'], {
    env: api.environment,
    encoding: 'utf8',
  });
  assert.equal(status, 2);
  assert.equal(
    stderr,
    'berth: a shell requires a terminal for stdin and stdout\n' +
      '  berth exec sbx_abcabcabcabcabcabcabcabc -- COMMAND runs a command without a terminal\n',
  );
});

/** The child of the terminal's shell. */
async function programIn(terminal: PseudoTerminal): Promise<number> {
  const shell = await terminal.program();
  return Number(readFileSync(`/proc/${shell}/task/${shell}/children`, 'utf8').split(' ')[0]);
}
