// `berth agent chat` in a terminal, against the SDK's test server.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import type { AgentSession } from '@berth/sdk';
import type { PseudoTerminal } from '../../../os/test/pseudo-terminal.ts';
import { playAgent } from '../../../sdk/test/scripted-agent.ts';
import { until } from '../../../os/test/until.ts';
import { TestService } from '../world/test-service.ts';

let service: TestService;
let session: AgentSession;
let screen: PseudoTerminal;
before(async () => {
  service = await TestService.start({ agent: playAgent });
});
after(async () => await service.close());
beforeEach(async () => {
  session = await service.server.client().agents.start((await service.sandbox()).id);
});
afterEach(() => screen.hangUp());

/** Starts a chat; resolves when it asks for a message. */
async function start(what = session.id, columns = 120): Promise<void> {
  screen = service.terminal(['agent', 'chat', what], { columns });
  await screen.shows(/> /);
}

/** Types a message; returns the position of what follows. */
function say(text: string): number {
  const from = screen.text.length;
  screen.type(`${text}\r`);
  return from;
}

const textsSent = async (): Promise<string[]> => (await session.turns()).turns.map(({ text }) => text);
const CTRL_C = '\u0003';
const CTRL_D = '\u0004';

test('messages and replies alternate, pasted lines are one message, and Ctrl-D leaves', async () => {
  await start();
  await screen.shows(new RegExp(`^Codex in ${session.data.sandboxId}, session ${session.id}\r\n`));
  let from = say('say hello');
  await screen.shows(/ {2}hello\r\n\r\n.*> /s, from);
  from = screen.text.length;
  screen.type('\u001B[200~say one\r\nsay two\u001B[201~');
  await screen.shows('say one␊say two', from);
  assert.equal((await textsSent()).length, 1, 'a paste sends nothing');
  from = say('');
  await screen.shows(/ {2}one\r\n\r\n {2}two\r\n\r\n.*> /s, from);
  screen.type(CTRL_D);
  assert.equal(await screen.ended(), 0);
  assert.deepEqual(await textsSent(), ['say hello', 'say one\nsay two']);
});

test('a sandbox continues its newest session, or gets one', async () => {
  const { sandboxId } = session.data;
  await start(sandboxId);
  await screen.shows(`session ${session.id}`);
  screen.hangUp();
  const { id } = await service.sandbox();
  await start(id);
  const [made] = (await service.server.client().agents.list({ sandboxId: id })).sessions;
  await screen.shows(`session ${made?.id}`);
});

test('an approval is shown in full, typed-ahead keys do not answer it, and the decision takes effect', async () => {
  const detail = `rm -rf build\n${'x'.repeat(5_000)}END`;
  const typed = Promise.withResolvers<void>();
  service.server.agent = async ({ ask, reply }) => {
    reply('working');
    await typed.promise;
    reply(await ask({ title: 'Clean up', detail, workingDirectory: '/w' }));
  };
  try {
    await start();
    let from = say('go');
    await screen.shows(/ {2}working\r\n/, from);
    from = say('a');
    await screen.shows(/a\r\n/, from);
    typed.resolve();
    await screen.shows(/END\r\n.*\[a\]ccept, \[d\]ecline, \[c\]ancel\? $/s, from);
    const shown = screen.text.slice(from);
    assert.match(
      shown,
      /asks for approval\r\n│ request 1, command\r\n│ Clean up\r\nin the folder\r\n│ \/w\r\ndetail\r\n│ rm -rf build\r\n│ x/,
    );
    assert.equal(shown.split('x').length - 1, 5_000);
    assert.equal((await session.refresh()).data.communication.status, 'needs_input');
    from = screen.text.length;
    screen.type('\r');
    await screen.shows(/\[a\]ccept, \[d\]ecline, \[c\]ancel\? $/, from + 2);
    from = say('d');
    await screen.shows(/ {2}decline\r\n/, from);
  } finally {
    service.server.agent = playAgent;
  }
});

test('an approval that is answered elsewhere leaves the question', async () => {
  await start();
  const from = say('ask Run the tests');
  await screen.shows(/ancel\? $/, from);
  await session.answer(1, 'decline');
  await screen.shows(/the approval was answered or withdrawn elsewhere\r\n {2}decline\r\n.*> /s, from);
});

test('Ctrl-C interrupts the turn, also at a question, and the conversation goes on', async () => {
  await start();
  for (const message of ['say begun\rhang', 'ask Run the tests']) {
    const from = screen.text.length;
    screen.type(`\u001B[200~${message}\u001B[201~\r`);
    await screen.shows(message.startsWith('ask') ? /ancel\? $/ : / {2}begun\r\n/, from);
    screen.type(CTRL_C);
    await screen.shows(/interrupting; Ctrl-C again leaves\r\n.*turn trn_\w+ canceled\r\n.*> /s, from);
  }
  const from = say('say on');
  await screen.shows(/ {2}on\r\n\r\n.*> /s, from);
});

test('a second Ctrl-C leaves while the turn continues; at an empty line two do', async () => {
  service.server.agent = ({ reply }) => {
    reply('begun');
    return new Promise(() => {});
  };
  try {
    await start();
    const from = say('go');
    await screen.shows('begun', from);
    service.before = async (path) => {
      if (path.endsWith('/interrupt')) await new Promise(() => {});
    };
    screen.type(CTRL_C);
    await screen.shows('interrupting', from);
    screen.type(CTRL_C);
    assert.equal(await screen.ended(), 130);
    assert.match(screen.text, /berth: stopped by SIGINT\r\n$/);
  } finally {
    service.before = () => undefined;
    service.server.agent = playAgent;
  }
  await session.interrupt();
  await start();
  screen.type(`say half${CTRL_C}`);
  screen.type(CTRL_C);
  await screen.shows('Ctrl-C again or Ctrl-D leaves');
  screen.type(CTRL_C);
  assert.equal(await screen.ended(), 130);
});

test('a stopped agent is recovered on request, and the message is then sent once', async () => {
  await start();
  service.server.stopAgent(session.id, 'idle');
  let from = say('say after');
  await screen.shows(
    /the message was not sent: the agent has stopped \(idle\)\r\nRecover the session now\? \[y\/N\] $/,
    from,
  );
  screen.type('n\r');
  await screen.shows(new RegExp(`later: berth agent recover ${session.id}\r\n.*> .*say after`, 's'), from);
  from = say('');
  await screen.shows(/now\? \[y\/N\] $/, from);
  screen.type('y\r');
  await screen.shows(/ {2}after\r\n/, from);
  assert.deepEqual(await textsSent(), ['say after']);
});

test('an agent that ends in mid turn fails it, and the remedy is named', async () => {
  await start();
  const from = say('hang');
  await until('the turn is active', async () =>
    (await session.refresh()).data.communication.status === 'busy' ? true : null,
  );
  service.server.stopAgent(session.id);
  await screen.shows(/turn trn_\w+ failed: the agent ended; the turn may have had effects \(agent_ended\)\r\n/, from);
  await screen.shows(`recover the session with berth agent recover ${session.id}, or send a message`, from);
});

test('a sandbox that sleeps is woken on request; a turn in it continues after the wake', async () => {
  const sandbox = await service.server.client().sandboxes.get(session.data.sandboxId);
  await start();
  await sandbox.sleep();
  let from = say('say awake\u001B[200~\nask Run the tests\u001B[201~');
  await screen.shows(/the message was not sent: .*\r\nWake the sandbox now\? \[y\/N\] $/, from);
  screen.type('y\r');
  await screen.shows(/ {2}awake\r\n\r\n.*ancel\? $/s, from);
  await sandbox.sleep();
  from = say('a');
  await screen.shows(
    /cannot answer: the sandbox \S+ is not awake \(stopped\); wake it with berth sandbox wake \S+, then/,
    from,
  );
  await sandbox.wake();
  from = say('a');
  await screen.shows(/ {2}accept\r\n/, from);
});

test('a message whose response is lost is repeated with its key, and runs once', async () => {
  await start();
  service.server.failNext({ path: '/messages', with: 'lost-answer' });
  let from = say('say once');
  await screen.shows(/sending again with the same key: it runs at most once\r\n.* {2}once\r\n/s, from);
  service.server.failNext({ path: '/messages', with: 'message_delivery_uncertain' });
  from = say('say twice');
  await screen.shows(/ {2}twice\r\n/, from);
  assert.deepEqual(await textsSent(), ['say once', 'say twice']);
});

test('an outage in mid turn is reported once, and the replies continue after it', async () => {
  let finish = (): void => undefined;
  service.server.agent = async ({ reply }) => {
    reply('before');
    await new Promise<void>((resolve) => (finish = resolve));
    reply('after');
  };
  try {
    await start();
    const from = say('go');
    await screen.shows(/ {2}before\r\n/, from);
    const { port } = service;
    await service.pause();
    await screen.shows(`retrying. The turn of ${session.id} continues meanwhile`, from);
    finish();
    await service.listen(port);
    await screen.shows(/the service responds again\r\n/, from);
    await screen.shows(/ {2}after\r\n/, from);
    assert.equal(screen.text.slice(from).split('retrying').length, 2);
  } finally {
    service.server.agent = playAgent;
  }
});

test('a turn of someone else is followed, and the message stays in the input', async () => {
  await start();
  await session.send('say theirs\nhang');
  const from = say('say mine');
  await screen.shows(/another turn is active; the message was not sent\r\nfollowing .*\r\n {2}theirs\r\n/, from);
  await session.interrupt();
  await screen.shows(/canceled\r\n.*> .*say mine/s, from);
});

test('Ctrl-Z gives the terminal back until the chat continues', async () => {
  await start();
  screen.type('say half\u001A');
  await until('the terminal is as before', async () => (/(?<!-)icanon/.test(await screen.settings()) ? true : null));
  process.kill(await screen.program(), 'SIGCONT');
  await until('the chat has it again', async () => (/-icanon/.test(await screen.settings()) ? true : null));
  const from = say(' and half');
  await screen.shows(/ {2}half and half\r\n/, from);
});

test('Ctrl-D at a question leaves, and names how to answer later', async () => {
  await start();
  const from = say('ask Run the tests');
  await screen.shows(/ancel\? $/, from);
  screen.type(CTRL_D);
  assert.equal(await screen.ended(), 0);
  assert.match(screen.text, new RegExp(`waits for an answer to an approval; .*berth agent answer ${session.id}\r\n$`));
});

test('every signal leaves the terminal as it was', async () => {
  for (const [name, code] of [
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    screen = service.terminal(['agent', 'chat', session.id], {
      line: 'stty -a; echo before; "$0" "$@"; echo "gave $?"; stty -a; echo over',
    });
    await screen.shows(/> /);
    const settings = screen.text.slice(0, screen.text.indexOf('before'));
    assert.match(await screen.settings(), /-icanon/);
    const shell = await screen.program();
    const child = execFileSync('pgrep', ['-P', String(shell)], { encoding: 'utf8' }).trim();
    process.kill(Number(child), name);
    await screen.shows(`gave ${code}`);
    await screen.shows('over');
    const after = /gave \d+\r\n([^]*?)over/.exec(screen.text)?.[1] ?? '';
    assert.equal(after, settings);
    assert.ok(screen.text.lastIndexOf('\u001B[?2004l') > screen.text.lastIndexOf('\u001B[?2004h'));
  }
});
