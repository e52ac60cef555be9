// `berth agent open` in a terminal, against a fake API.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { WebSocket } from 'ws';
import { PseudoTerminal } from '../../../os/test/pseudo-terminal.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { ApiServer } from '../world/api-server.ts';
import { berth, MAIN } from '../world/berth.ts';

const SANDBOX = 'sbx_abcabcabcabcabcabcabcabc';
const [CTRL_P, CTRL_Q] = ['\x10', '\x11'];

let api: ApiServer;
before(async () => {
  api = await ApiServer.start();
});
after(() => api.close());

interface Opened {
  screen: PseudoTerminal;
  socket: WebSocket;
  query: URLSearchParams;
  typed: () => string;
}

async function open(): Promise<Opened> {
  const { promise, resolve } = Promise.withResolvers<Omit<Opened, 'screen'>>();
  api.answer = (socket, { url = '' }) => {
    let typed = '';
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) typed += data.toString();
    });
    socket.send(Buffer.from('the agent\r\n'));
    resolve({ socket, query: new URL(url, 'http://api').searchParams, typed: () => typed });
  };
  const screen = new PseudoTerminal(process.execPath, [MAIN, 'agent', 'open', SANDBOX], api.environment);
  const opened = await promise;
  await screen.shows('the agent');
  return { screen, ...opened };
}

test('Ctrl-P Ctrl-Q leaves the program of the agent, with exit code 0 and the way back', async () => {
  const { screen, socket, query, typed } = await open();
  assert.deepEqual([query.get('agent'), query.has('command')], ['true', false]);
  screen.type('hello\r');
  await untilTrue('the keys arrive', () => typed() === 'hello\r');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  screen.type(`last${CTRL_P}${CTRL_Q}`);
  await closed;
  assert.equal(await screen.ended(), 0);
  assert.equal(typed(), 'hello\rlast');
  await screen.shows(`the agent's program goes on: berth agent open ${SANDBOX}`);
});

test('the exit of the program is that of the command, and a lost connection is a failure', async () => {
  const exited = await open();
  exited.socket.send(JSON.stringify({ exit: 7 }));
  exited.socket.close(1000);
  assert.equal(await exited.screen.ended(), 7);

  const lost = await open();
  lost.socket.close(4409, 'sandbox_state_conflict');
  await lost.screen.shows(/the terminal was closed: the sandbox is no longer awake/);
  assert.equal(await lost.screen.ended(), 1);
});

test('without a terminal, open refuses and names the commands that need none', async () => {
  const { code, stderr } = await berth(['agent', 'open', SANDBOX], { env: api.environment });
  assert.equal(code, 2);
  assert.match(stderr, /requires a terminal[^]*berth agent start SANDBOX, then berth agent send/);
});
