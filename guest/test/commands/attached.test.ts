// Attached commands with pipes: input, outputs, signals, and every kind of end.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { test } from 'node:test';
import { bytesFrames, controlFrame } from '@berth/protocol/terminal-frames.ts';
import { runs, until } from '../daemon.ts';
import { Attached, openStream, refusalOf, secured } from '../terminals/connection.ts';

const MIB = 2 ** 20;

test('a command receives its whole input and returns separate outputs', async (t) => {
  const daemon = await secured(t);
  const cat = await Attached.start(daemon, 'cat; echo then this >&2; echo last; exit 3');
  cat.write('grüße\n');
  await until('it comes back', () => cat.stdout === 'grüße\n');
  cat.order({ end: true });
  assert.deepEqual([await cat.exit(), cat.stdout, cat.stderr], [{ exit: 3 }, 'grüße\nlast\n', 'then this\n']);
});

test('an attached command gets the shell, user, folder and session of exec, and reopenable pipes', async (t) => {
  const daemon = await secured(t);
  const script = 'id; pwd; env | sort; cat /proc/self/oom_score_adj; umask; ps -o sid= -p $$ | tr -d " " | grep -cx $$';
  const attached = await Attached.start(daemon, script);
  assert.deepEqual(await attached.exit(), { exit: 0 });
  const { text } = await daemon.call('POST', '/exec', { command: script, timeoutSeconds: 60 }, 's'.repeat(43));
  assert.equal(attached.stdout, (JSON.parse(text) as { stdout: string }).stdout);
  // Reopens stdin after everything was written, and its end too.
  const again = await Attached.start(
    daemon,
    'echo out >/dev/stdout; echo err >/dev/stderr; sleep 0.3; cat /dev/stdin; cat </dev/stdin',
  );
  again.write('in');
  again.order({ end: true });
  assert.deepEqual([await again.exit(), again.stdout, again.stderr], [{ exit: 0 }, 'out\nin', 'err\n']);
});

test('an attached command gets its folder and user, in a terminal too, or is refused', async (t) => {
  const daemon = await secured(t);
  const { username } = userInfo();
  const shown: string[] = [];
  const command = 'printf "%s %s" "$PWD" "$USER"';
  for (const query of [
    { tty: 'false', command, cwd: '/', user: username },
    { tty: 'false', command, cwd: '..' },
  ]) {
    const attached = new Attached(await openStream(daemon, query));
    assert.deepEqual(await attached.exit(), { exit: 0 });
    shown.push(attached.stdout);
  }
  const terminal = await openStream(daemon, { cols: '80', rows: '24', command, cwd: '/' });
  for await (const chunk of terminal) shown.push((chunk as Buffer).toString());
  assert.equal(shown[0], `/ ${username}`);
  assert.ok(shown[1]?.startsWith('/') && !shown[1].startsWith('/ '), shown[1]);
  assert.match(shown.slice(2).join(''), /\/ /);

  for (const form of ['tty=false', 'cols=80&rows=24']) {
    for (const [option, code] of [
      ['user=nobody-of-this-name', 'command_user_unknown'],
      ['cwd=nowhere', 'command_cwd_invalid'],
    ] as const) {
      const { status, text } = await refusalOf(daemon, `?${form}&command=true&${option}`);
      assert.deepEqual([status, (JSON.parse(text) as { error: { code?: string } }).error.code], [400, code], text);
    }
  }
});

test('every exit code is reported, and the signal that ended a command by its name', async (t) => {
  const daemon = await secured(t);
  for (let from = 0; from < 256; from += 32) {
    const codes = Array.from({ length: 32 }, (_, index) => from + index);
    const exits = await Promise.all(codes.map(async (code) => (await Attached.start(daemon, `exit ${code}`)).exit()));
    assert.deepEqual(
      exits,
      codes.map((exit) => ({ exit })),
    );
  }
  for (const [command, exit] of [
    ['no-such-command-there-is', { exit: 127 }],
    ['kill -TERM $$', { exit: 143, signal: 'SIGTERM' }],
    ['kill -9 $$', { exit: 137, signal: 'SIGKILL' }],
    ['ulimit -c 0; kill -SEGV $$', { exit: 139, signal: 'SIGSEGV' }],
    [':', { exit: 0 }],
  ] as const) {
    const attached = await Attached.start(daemon, command);
    assert.deepEqual(await attached.exit(), exit, command);
    assert.equal(attached.stdout, '');
  }
});

test('signals go to the whole process group, SIGWINCH among them', async (t) => {
  const daemon = await secured(t);
  for (const [signal, number] of [
    ['SIGHUP', 1],
    ['SIGINT', 2],
    ['SIGQUIT', 3],
    ['SIGTERM', 15],
    ['SIGKILL', 9],
    ['SIGUSR1', 10],
    ['SIGUSR2', 12],
  ] as const) {
    const attached = await Attached.start(daemon, `ulimit -c 0; (echo ready; exec sleep 1000) | cat; echo never`);
    await until('the child is there', () => attached.stdout === 'ready\n');
    attached.order({ signal });
    assert.deepEqual([await attached.exit(), attached.stdout], [{ exit: 128 + number, signal }, 'ready\n'], signal);
  }
  const trapping = await Attached.start(
    daemon,
    'for name in WINCH TSTP CONT; do trap "echo got $name" $name; done; echo ready; ' +
      'while read line; do :; done; while [ ! -e go ]; do sleep 0.02; done',
  );
  await until('it waits', () => trapping.stdout === 'ready\n');
  for (const name of ['WINCH', 'TSTP', 'CONT']) {
    trapping.order({ signal: `SIG${name}` });
    trapping.order({ end: true });
    await until(`it hears of ${name}`, () => trapping.stdout.endsWith(`got ${name}\n`));
  }
  await daemon.call('POST', '/exec', { command: 'touch go', timeoutSeconds: 10 }, 's'.repeat(43));
  assert.deepEqual(await trapping.exit(), { exit: 0 });
});

test('a stopped command resumes with SIGCONT', async (t) => {
  const daemon = await secured(t);
  const attached = await Attached.start(daemon, 'echo $$ > shell; kill -STOP $$; echo went on');
  const shell = await daemon.number('shell');
  const state = async (): Promise<string> =>
    /^State:\s+(\w)/m.exec(await readFile(`/proc/${shell}/status`, 'utf8'))?.[1] ?? '';
  await until('it is stopped', async () => (await state()) === 'T');
  attached.order({ signal: 'SIGCONT' });
  assert.deepEqual([await attached.exit(), attached.stdout], [{ exit: 0 }, 'went on\n']);
});

for (const [how, leave] of [
  ['is cut off', (attached: Attached) => attached.socket.resetAndDestroy()],
  ['is closed', (attached: Attached) => attached.socket.destroy()],
  ['comes to its end', (attached: Attached) => attached.socket.end()],
  ['says what is no order', (attached: Attached) => attached.order({ resize: { cols: 80, rows: 24 } })],
] as const) {
  test(`a command whose connection ${how} gets SIGHUP, and ends with its whole session`, async (t) => {
    const daemon = await secured(t);
    const attached = await Attached.start(
      daemon,
      `trap 'echo hung up > hup; exit' HUP
       bash -mc 'sleep 1000 & echo $! > group; wait' & echo $! > child; echo $$ > shell
       # A program that the shell starts could lose the signal before its exec.
       wait`,
    );
    const pids = [await daemon.number('shell'), await daemon.number('child'), await daemon.number('group')];
    leave(attached);
    for (const pid of pids) await until(`${pid} is gone`, async () => !(await runs(pid)));
    assert.equal(await readFile(`${daemon.codeFolder}/hup`, 'utf8'), 'hung up\n');
    await until('nothing of the session is left', async () => (await membersOf(pids[0] ?? 0)).length === 0);
  });
}

test('processes of a command that ignore SIGHUP are killed', async (t) => {
  const daemon = await secured(t);
  const attached = await Attached.start(
    daemon,
    `trap '' HUP
     (trap '' HUP TERM INT; sleep 1000 & wait) &
     bash -mc 'trap "" HUP; sleep 1000 & echo $! > group; wait' & echo $! > child; echo $$ > shell
     while :; do sleep 1000; done`,
  );
  const pids = [await daemon.number('shell'), await daemon.number('child'), await daemon.number('group')];
  attached.socket.destroy();
  for (const pid of pids) await until(`${pid} is gone`, async () => !(await runs(pid)));
  await until('nothing of the session is left', async () => (await membersOf(pids[0] ?? 0)).length === 0);
});

test('an idle command ends too when its connection breaks with much data in flight', async (t) => {
  const daemon = await secured(t);
  const attached = await Attached.start(daemon, 'echo $$ > shell; exec sleep 1000');
  const shell = await daemon.number('shell');
  while (attached.write(Buffer.alloc(MIB)));
  await until('no more is taken', async () => {
    const before = attached.socket.bytesWritten - attached.socket.writableLength;
    await once(AbortSignal.timeout(200), 'abort');
    return before === attached.socket.bytesWritten - attached.socket.writableLength;
  });
  attached.socket.resetAndDestroy();
  await until('it is gone', async () => !(await runs(shell)));
});

test('tens of megabytes go through each way at once, complete', async (t) => {
  const daemon = await secured(t);
  const attached = await Attached.start(daemon, 'tee /dev/stderr');
  const sums = [createHash('sha256'), createHash('sha256')] as const;
  const counts = [0, 0];
  attached.onOutput = (stream, bytes) => {
    sums[stream - 1]?.update(bytes);
    counts[stream - 1] = (counts[stream - 1] ?? 0) + bytes.length;
  };
  const sent = createHash('sha256');
  for (let round = 0; round < 32; round += 1) {
    const bytes = randomBytes(MIB);
    sent.update(bytes);
    if (!attached.write(bytes)) await once(attached.socket, 'drain');
  }
  attached.order({ end: true });
  assert.deepEqual(await attached.exit(), { exit: 0 });
  const expected = sent.digest('hex');
  assert.deepEqual(
    [counts, sums.map((sum) => sum.digest('hex'))],
    [
      [32 * MIB, 32 * MIB],
      [expected, expected],
    ],
  );
});

test('one-byte frames are forwarded in order', async (t) => {
  const daemon = await secured(t);
  const attached = await Attached.start(daemon, 'cat');
  const bytes = randomBytes(50_000).toString('hex');
  attached.socket.write(Buffer.concat(bytes.split('').map((byte) => bytesFrames(Buffer.from(byte)))));
  attached.order({ end: true });
  assert.deepEqual(await attached.exit(), { exit: 0 });
  assert.equal(attached.stdout, bytes);
});

test('unread output blocks the command with bounded memory, and all of it arrives in the end', async (t) => {
  const daemon = await secured(t);
  const before = await residentMib(daemon.pid);
  const attached = await Attached.start(daemon, 'head -c 200000000 /dev/zero; echo done > finished; echo e >&2');
  let bytes = 0;
  attached.onOutput = (stream, { length }) => (bytes += stream === 1 ? length : 0);
  await until('it writes', () => bytes > 0);
  attached.socket.pause();
  const seen = await settled(() => attached.socket.bytesRead);
  assert.ok(seen < 100_000_000, `${seen} bytes were read`);
  assert.deepEqual(await readdir(daemon.codeFolder), []);
  assert.ok((await residentMib(daemon.pid)) - before < 64);
  attached.socket.resume();
  assert.deepEqual([await attached.exit(), bytes], [{ exit: 0 }, 200_000_000]);
});

test('unread input is held back, with bounded memory', async (t) => {
  const daemon = await secured(t);
  const before = await residentMib(daemon.pid);
  const attached = await Attached.start(daemon, 'while [ ! -e go ]; do sleep 0.02; done; wc -c');
  const sent = 100;
  for (let round = 0; round < sent; round += 1) attached.write(Buffer.alloc(MIB, round));
  attached.order({ end: true });
  const taken = await settled(() => attached.socket.bytesWritten - attached.socket.writableLength);
  assert.ok(taken < 50 * MIB, `${taken} bytes were taken`);
  assert.ok((await residentMib(daemon.pid)) - before < 64);
  await daemon.call('POST', '/exec', { command: 'touch go', timeoutSeconds: 10 }, 's'.repeat(43));
  assert.deepEqual([await attached.exit(), attached.stdout], [{ exit: 0 }, `${sent * MIB}\n`]);
});

test('a command that exits or closes its input early keeps its exit code', async (t) => {
  const daemon = await secured(t);
  for (const [command, exit, output] of [
    ['head -c 5; exit 4', 4, '00000'],
    ['exec <&-; sleep 0.2; echo on; exit 5', 5, 'on\n'],
  ] as const) {
    const attached = await Attached.start(daemon, command);
    for (let round = 0; round < 20; round += 1) attached.write(Buffer.alloc(MIB, '0'));
    assert.deepEqual([await attached.exit(), attached.stdout], [{ exit }, output], command);
    attached.write('more, to nobody');
    attached.socket.end();
  }
});

test('a background process neither delays the exit of the command nor ends with it, and can still write', async (t) => {
  const daemon = await secured(t);
  const attached = await Attached.start(
    daemon,
    '(sleep 0.2; head -c 3000000 /dev/zero; echo 1 > written; exec sleep 1000) & echo $! > child; echo hi',
  );
  assert.deepEqual([await attached.exit(), attached.stdout], [{ exit: 0 }, 'hi\n']);
  const child = await daemon.number('child');
  await until('all is written', async () => (await daemon.number('written')) === 1);
  assert.equal(await runs(child), true);
  process.kill(child, 'SIGKILL');
});

test('a hundred concurrent commands stay separate; one above the limit is refused until one exits', async (t) => {
  const daemon = await secured(t, { BERTH_GUEST_MAX_RUNNING: '100' });
  const all = await Promise.all(
    Array.from({ length: 100 }, (_, index) => Attached.start(daemon, `cat; exit ${index}`)),
  );
  assert.equal((await refusalOf(daemon, '?tty=false&command=true')).status, 429);
  all.forEach((attached, index) => {
    attached.write(`number ${index}`);
    attached.order({ end: true });
  });
  const exits = await Promise.all(all.map((attached) => attached.exit()));
  exits.forEach((exit, index) => assert.deepEqual([exit, all[index]?.stdout], [{ exit: index }, `number ${index}`]));
  const next = await Attached.start(daemon, 'trap "" HUP; echo $$ > shell; sleep 1000');
  const shell = await daemon.number('shell');
  await daemon.stop('SIGTERM');
  await until('a daemon that is stopped ends it', async () => !(await runs(shell)));
  assert.deepEqual(next.controls, []);
});

test('an invalid command is refused before a start, and an invalid frame ends it', async (t) => {
  const daemon = await secured(t);
  for (const query of [
    '?tty=false',
    '?tty=false&command=',
    '?tty=false&command=a%00b',
    '?cols=80&rows=24&command=a%00b',
    '?command=true',
  ])
    assert.equal((await refusalOf(daemon, query)).status, 400, query);

  for (const nonsense of [
    Buffer.from([7, 0, 0, 0, 0]),
    controlFrame({ end: 1 }),
    controlFrame({ signal: 'SIGSEGV' }),
    controlFrame('end'),
  ]) {
    const attached = await Attached.start(daemon, 'cat');
    attached.socket.write(nonsense);
    await until('it is closed', () => attached.closed || attached.ended);
    assert.deepEqual(attached.controls, []);
  }
  const long = `: '${'x'.repeat(40_000)}'; echo long`;
  const attached = await Attached.start(daemon, long);
  assert.deepEqual([await attached.exit(), attached.stdout], [{ exit: 0 }, 'long\n']);
  await assert.rejects(openStream(daemon, { tty: 'false', command: 'x'.repeat(70_000) }));
});

/** Processes of a POSIX session, without zombies. */
async function membersOf(session: number): Promise<string[]> {
  const members: string[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
    const [state, , , of] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (Number(of) === session && state !== 'Z') members.push(stat);
  }
  return members;
}

async function residentMib(pid: number): Promise<number> {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;
}

/** The value once it stops changing. */
async function settled(figure: () => number): Promise<number> {
  let last = -1;
  await until('it stands still', async () => {
    const before = last;
    await once(AbortSignal.timeout(200), 'abort');
    last = figure();
    return last === before;
  });
  return last;
}
