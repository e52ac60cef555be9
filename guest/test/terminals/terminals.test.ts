// Terminals of the guest daemon: a shell with job control, as a person at a keyboard sees it.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { bytesFrames, controlFrame, FrameReader, TERMINAL_FRAME } from '@berth/protocol/terminal-frames.ts';
import { runs, until, type TestDaemon } from '../daemon.ts';
import { requestStream, openStream, refusalOf, SECRET, secured } from './connection.ts';

class Screen {
  readonly socket: Socket;
  text = '';
  readonly controls: unknown[] = [];
  ended = false;

  constructor(socket: Socket) {
    this.socket = socket;
    const reader = new FrameReader((kind, content) => {
      if (kind === TERMINAL_FRAME.bytes) this.text += content.toString('utf8');
      else this.controls.push(JSON.parse(content.toString('utf8')));
    });
    socket.on('data', (chunk: Buffer) => reader.push(chunk));
    socket.on('error', () => undefined);
    socket.once('end', () => {
      this.ended = true;
      socket.end();
    });
  }

  type(keys: string): void {
    this.socket.write(bytesFrames(Buffer.from(keys)));
  }

  order(value: unknown): void {
    this.socket.write(controlFrame(value));
  }

  /** Waits until the text appears after the existing output. */
  async shows(text: string | RegExp, from = 0): Promise<RegExpExecArray> {
    const pattern = typeof text === 'string' ? new RegExp(text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')) : text;
    let found: RegExpExecArray | null = null;
    await until(`the terminal shows ${pattern.source}; it shows ${JSON.stringify(this.text.slice(-300))}`, () => {
      found = pattern.exec(this.text.slice(from));
      return found !== null;
    });
    assert.ok(found !== null);
    return found;
  }

  /** Runs a command line and returns its output and exit code. Echo must be off. */
  async run(line: string): Promise<string> {
    const from = this.text.length;
    this.type(`${line}; printf '<%s>' end-$?\n`);
    const [all] = await this.shows(/[^]*<end-\d+>/, from);
    return all.replaceAll('\r', '');
  }
}

/** A terminal with its default settings. */
async function openBare(daemon: TestDaemon, { cols = 80, rows = 24 } = {}): Promise<Screen> {
  return new Screen(await openStream(daemon, { cols: String(cols), rows: String(rows) }));
}

/** A terminal that shows only program output: without echo, prompt and line editor. */
async function open(daemon: TestDaemon, size?: { cols?: number; rows?: number }): Promise<Screen> {
  const screen = await openBare(daemon, size);
  screen.type("exec bash --norc --noprofile --noediting -i\n stty -echo; PS1='' PS2=''; echo now it is pl''ain\n");
  await screen.shows('now it is plain\r\n');
  screen.text = '';
  return screen;
}

test('a shell gets a TTY of the requested size, which follows a resize', async (t) => {
  const screen = await open(await secured(t), { cols: 101, rows: 33 });
  assert.equal(await screen.run('stty size'), '33 101\n<end-0>');
  assert.match(await screen.run('tty; echo $TERM'), /^\/dev\/pts\/\d+\nxterm-256color\n/);
  screen.order({ resize: { cols: 40, rows: 10 } });
  await until('the size is the new one', async () => (await screen.run('stty size')) === '10 40\n<end-0>');
  screen.type(`sh -c 'trap "echo told of the new size" WINCH; echo waiting; while :; do sleep 0.05; done'\n`);
  await screen.shows('waiting\r\n');
  screen.order({ resize: { cols: 120, rows: 50 } });
  await screen.shows('told of the new size\r\n');
  screen.type('\x03');
});

test('Ctrl-C ends the foreground program and not the shell, which sees 130', async (t) => {
  const screen = await open(await secured(t));
  // Printed by the program once it is in the foreground.
  screen.type("sh -c 'echo ready to sleep; exec sleep 1000'\n");
  await screen.shows('ready to sleep\r\n');
  screen.type('\x03');
  assert.match(await screen.run('echo code $?'), /code 130\n/);
});

test('a shell has job control: Ctrl-Z stops a program, which is listed and resumed', async (t) => {
  const screen = await open(await secured(t));
  screen.type('cat\n');
  screen.type('in the cat\n');
  await screen.shows('in the cat\r\n');
  screen.type('\x1a');
  await screen.shows(/Stopped|stopped/);
  assert.match(await screen.run('jobs'), /cat/);
  screen.type('fg\nback in it\n');
  await screen.shows('back in it\r\n');
  screen.type('\x04');
  assert.match(await screen.run('echo gone'), /gone/);
});

test('multibyte characters go through, even split ones, and one key erases a whole one', async (t) => {
  const screen = await open(await secured(t));
  assert.equal(await screen.run("printf '%s\\n' 'grüße, 日本語, 💡'"), 'grüße, 日本語, 💡\n<end-0>');
  const bytes = Buffer.from("echo 'zü💡rich'\n");
  const from = screen.text.length;
  for (const byte of bytes) screen.socket.write(bytesFrames(Buffer.from([byte])));
  await screen.shows('zü💡rich\r\n', from);
  // No line editor: the terminal itself edits.
  screen.type('read line; echo "got[$line]"\n');
  screen.type('aü\x7fb\n');
  await screen.shows('got[ab]');
});

test('the exit code of the shell is sent last, then the connection closes', async (t) => {
  const daemon = await secured(t);
  for (const [line, code, signal] of [
    ['exit 7', 7],
    ['exit', 0],
    ['kill -9 $$', 137, 'SIGKILL'],
    ['kill -15 $$; kill -1 $$', 129, 'SIGHUP'],
    ['(sleep 1000 &); echo the last words; exit 3', 3],
  ] as const) {
    const screen = await open(daemon);
    await screen.run('true');
    screen.type(`${line}\n`);
    await until('the connection ends', () => screen.ended);
    assert.deepEqual(screen.controls, [signal === undefined ? { exit: code } : { exit: code, signal }]);
    if (code === 3) assert.match(screen.text, /the last words\r\n/);
  }
});

test('all output of a program arrives before the end, in any amount', async (t) => {
  const screen = await open(await secured(t));
  screen.type('seq 1 100000; exit 0\n');
  await until('the connection ends', () => screen.ended);
  const lines = screen.text.split('\r\n').filter((line) => /^\d+$/.test(line));
  assert.equal(lines.length, 100_000);
  assert.equal(lines.at(-1), '100000');
});

test('unread output blocks the program, which continues when it is read', async (t) => {
  const daemon = await secured(t);
  const screen = await open(daemon);
  await screen.run('true');
  screen.socket.pause();
  screen.type(`(while :; do printf '%16000s\\n' x; n=$((n+1)); echo $n > count; done)\n`);
  await until('it writes', async () => (await daemon.number('count')) > 10);
  let last = 0;
  await until('it stands still', async () => {
    const before = last;
    last = await daemon.number('count');
    await new Promise((resolve) => {
      setTimeout(resolve, 100);
    });
    return last === before;
  });
  screen.socket.resume();
  await until('it goes on', async () => (await daemon.number('count')) > last);
});

test('a closed connection hangs up its terminal: shell and programs get SIGHUP, nohup ones continue', async (t) => {
  for (const end of [(socket: Socket) => socket.end(), (socket: Socket) => socket.resetAndDestroy()]) {
    const daemon = await secured(t);
    const screen = await openBare(daemon);
    screen.type('echo $$ > shell; (sleep 1000 & echo $! > child; wait) &\n');
    screen.type(`nohup sh -c 'echo $$ > kept; exec sleep 1000' >/dev/null 2>&1 &\n`);
    const [shell, child, kept] = [
      await daemon.number('shell'),
      await daemon.number('child'),
      await daemon.number('kept'),
    ];
    end(screen.socket);
    await until('the shell and its child are gone', async () => !(await runs(shell)) && !(await runs(child)));
    assert.ok(await runs(kept));
    process.kill(kept, 'SIGKILL');
  }
});

test('signals go to the foreground program', async (t) => {
  const daemon = await secured(t);
  const screen = await open(daemon);
  for (const [name, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGQUIT', 131],
    ['SIGKILL', 137],
    ['SIGUSR1', 138],
  ] as const) {
    // On a separate line: a shell whose program is interrupted drops the rest of the line.
    screen.type(`sh -c 'echo $$ > pid-${name}; exec sleep 1000'\n`);
    await daemon.number(`pid-${name}`);
    screen.order({ signal: name });
    assert.match(await screen.run('echo "code $?."'), new RegExp(`code ${code}\\.`), name);
  }
});

test('the shell is the user’s login shell in the code folder, without descriptors of the daemon', async (t) => {
  const daemon = await secured(t);
  const bare = await openBare(daemon);
  bare.type('shopt -q login_shell && echo a login\'\'-shell "$0"\n');
  await bare.shows('a login-shell -bash\r\n');
  const screen = await open(daemon);
  assert.equal(await screen.run('pwd'), `${daemon.codeFolder}\n<end-0>`);
  const held = await screen.run('ls -l /proc/$$/fd | grep -c "socket:"');
  assert.equal(held, '0\n<end-1>');
  assert.equal(await screen.run('cat /proc/self/oom_score_adj'), '0\n<end-0>');
});

test('an invalid size, protocol or secret is refused before a start; later nonsense hangs up', async (t) => {
  const daemon = await secured(t);
  const refusal = async (query: string, options?: { secret?: string; protocol?: string }): Promise<number> => {
    return (await refusalOf(daemon, query, options)).status;
  };
  for (const query of [
    '',
    '?cols=80',
    '?cols=80&rows=0',
    '?cols=80&rows=1001',
    '?cols=-1&rows=24',
    '?cols=80.0&rows=24',
    '?cols=1e2&rows=24',
  ])
    assert.equal(await refusal(query), 400, query);

  assert.equal(await refusal('?cols=80&rows=24', { protocol: 'tcp' }), 400);
  assert.equal(await refusal('?cols=80&rows=24', { secret: 'x'.repeat(43) }), 401);

  for (const nonsense of [
    Buffer.from([7, 0, 0, 0, 0]),
    Buffer.from([0, 1, 0, 0, 1]),
    controlFrame({ resize: { cols: 0, rows: 10 } }),
    controlFrame({ signal: 'SIGSEGV' }),
    controlFrame({ end: true }),
    controlFrame(null),
    Buffer.concat([Buffer.from([1, 0, 0, 0, 3]), Buffer.from('{"a')]),
  ]) {
    const screen = await open(daemon);
    const closed = new Promise((resolve) => screen.socket.once('close', resolve));
    screen.socket.write(nonsense);
    await closed;
  }
});

test('terminals are limited, and new ones open once some close', async (t) => {
  const daemon = await secured(t, { BERTH_GUEST_MAX_TERMINALS: '2' });
  const first = await open(daemon);
  await open(daemon);
  assert.equal((await refusalOf(daemon, '?cols=80&rows=24')).status, 429);
  first.socket.destroy();
  await until('there is room again', async () => !('status' in (await requestStream(daemon, '?cols=80&rows=24'))));
});

/** A command in a terminal. */
async function inTerminal(daemon: TestDaemon, command: string): Promise<Screen> {
  return new Screen(await openStream(daemon, { cols: '81', rows: '25', command }));
}

test('a command in a terminal runs like exec and reports its exit code last', async (t) => {
  const daemon = await secured(t);
  const screen = await inTerminal(
    daemon,
    'tty; stty size; echo $TERM $SHELL $0; pwd; env | cut -d= -f1 | sort | tr "\\n" " "; echo err >&2; exit 6',
  );
  await until('the connection ends', () => screen.ended);
  assert.match(
    screen.text.replaceAll('\r', ''),
    new RegExp(
      `^/dev/pts/\\d+\n25 81\nxterm-256color /bin/bash /bin/sh\n${daemon.codeFolder}\n` +
        '(_ )?HOME LANG LOGNAME PATH PWD SHELL TERM USER (_ )?err\n$',
    ),
  );
  assert.deepEqual(screen.controls, [{ exit: 6 }]);
  for (const [command, exit] of [
    ['true', { exit: 0 }],
    ['exit 255', { exit: 255 }],
    ['no-such-command-there-is', { exit: 127 }],
    ['kill -TERM $$', { exit: 143, signal: 'SIGTERM' }],
    ['kill -40 $$', { exit: 168, signal: 'SIG40' }],
    ['sleep 1000 & exit 3', { exit: 3 }],
  ] as const) {
    const ended = await inTerminal(daemon, command);
    await until(`the connection of ${command} ends`, () => ended.ended);
    assert.deepEqual(ended.controls, [exit], command);
  }
});

test('keys, sizes and signals reach a command in a terminal', async (t) => {
  const daemon = await secured(t);
  const asking = await inTerminal(
    daemon,
    'trap "stty size" WINCH; printf "name? "; read name; echo "hello $name"; while :; do sleep 0.05; done',
  );
  await asking.shows('name? ');
  asking.type('Zoë\n');
  await asking.shows('hello Zoë\r\n');
  asking.order({ resize: { cols: 40, rows: 10 } });
  await asking.shows('10 40\r\n');
  asking.text = '';
  asking.order({ signal: 'SIGWINCH' });
  await asking.shows('10 40\r\n');
  asking.order({ signal: 'SIGINT' });
  await until('the connection ends', () => asking.ended);
  assert.deepEqual(asking.controls, [{ exit: 130, signal: 'SIGINT' }]);
});

test('a terminal command ends with its whole session when its connection or helper dies', async (t) => {
  for (const leave of [
    (screen: Screen) => screen.socket.resetAndDestroy(),
    (screen: Screen) => screen.socket.end(),
    async (_: Screen, shell: number) => process.kill(await parentOf(shell), 'SIGKILL'),
  ]) {
    const daemon = await secured(t);
    const screen = await inTerminal(
      daemon,
      `trap '' HUP; (sleep 1000 & echo $! > child; wait) & ` +
        `bash -mc 'sleep 1000 & echo $! > group; wait' & echo $$ > shell; ` +
        'while :; do sleep 1000; done',
    );
    const pids = [await daemon.number('shell'), await daemon.number('child'), await daemon.number('group')];
    await leave(screen, pids[0] ?? 0);
    for (const pid of pids) await until(`${pid} is gone`, async () => !(await runs(pid)));
  }
});

test('large output of a terminal command arrives whole before its end', async (t) => {
  const screen = await inTerminal(await secured(t), 'stty raw -echo; head -c 10000000 /dev/zero; printf end');
  await until('the connection ends', () => screen.ended);
  assert.ok(screen.text === `${'\0'.repeat(10_000_000)}end`, `${screen.text.length} came`);
});

async function parentOf(pid: number): Promise<number> {
  return Number(/^PPid:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

test('a terminal that starts while other programs exit shows its output', async (t) => {
  const daemon = await secured(t);
  const stop = new AbortController();
  const exiting = Array.from({ length: 4 }, async () => {
    while (!stop.signal.aborted) await daemon.call('POST', '/exec', { command: 'exit', timeoutSeconds: 60 }, SECRET);
  });
  try {
    for (let started = 0; started < 60; started += 1) {
      const screen = new Screen(await openStream(daemon, { cols: '80', rows: '24', command: 'echo shown; cat' }));
      await screen.shows('shown');
      screen.socket.destroy();
    }
  } finally {
    stop.abort();
    await Promise.all(exiting);
  }
});
