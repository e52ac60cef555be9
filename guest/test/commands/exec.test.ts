// Environment of a command, and the content of its response.
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { test } from 'node:test';
import { EXEC_COMMAND_LENGTH, EXEC_OUTPUT_BYTES } from '@berth/protocol/guest.ts';
import { startDaemon, testUid } from '../daemon.ts';

test('a command runs as the user in the code folder, with a clean environment and its own session', async (t) => {
  const daemon = await startDaemon(t);
  const identity = await daemon.exec('pwd; id -u; id -g; id -G; ps -o pid=,pgid=,sid=,tty= -p $$; umask');
  const [folder, uid, gid, groups, ps = '', umask] = identity.stdout.trim().split('\n');
  const [pid, pgid, sid, tty] = ps.trim().split(/\s+/);
  assert.deepEqual(
    [folder, uid, gid, groups],
    [daemon.codeFolder, ...Array.from({ length: 3 }, () => String(testUid))],
  );
  assert.deepEqual([pgid, sid, tty, umask], [pid, pid, '?', '0022']);

  const environment = (await daemon.exec('env')).stdout.trim().split('\n').sort();
  assert.deepEqual(environment, [
    `HOME=${daemon.codeFolder}`,
    'LANG=C.UTF-8',
    'LOGNAME=berth',
    `PATH=${daemon.codeFolder}/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
    `PWD=${daemon.codeFolder}`,
    'SHELL=/bin/bash',
    'TERM=dumb',
    'USER=berth',
  ]);
});

test('stdin is empty, and both outputs are reopenable pipes of the user', async (t) => {
  const daemon = await startDaemon(t);
  const result = await daemon.exec(
    'wc -c; stat -Lc %F:%u /dev/stdout /dev/stderr; ' +
      'echo out > /dev/stdout; echo err > /dev/stderr; echo fd >> /proc/self/fd/2',
  );
  assert.equal(result.stdout, `0\nfifo:${testUid}\nfifo:${testUid}\nout\n`);
  assert.equal(result.stderr, 'err\nfd\n');
});

test('a command holds only its own three descriptors', async (t) => {
  const daemon = await startDaemon(t);
  const others = Array.from({ length: 5 }, () => daemon.exec('sleep 0.2; echo'));
  const result = await daemon.exec('for fd in /proc/$$/fd/*; do readlink $fd; done');
  await Promise.all(others);
  const [stdin, ...outputs] = result.stdout.trim().split('\n');
  assert.equal(stdin, '/dev/null');
  assert.deepEqual(
    outputs.map((line) => line.startsWith('pipe:')),
    [true, true],
    result.stdout,
  );
});

test('the exit code is that of the shell, or 128 + n for signal n', async (t) => {
  const daemon = await startDaemon(t);
  for (const [command, exitCode] of [
    ['true', 0],
    ['exit 3', 3],
    ['exit 255', 255],
    ['no-such-program', 127],
    ['kill -TERM $$', 143],
    ['kill -KILL $$', 137],
    ['(', 2],
  ] as const) {
    const result = await daemon.exec(command);
    assert.deepEqual([result.exitCode, result.timedOut, result.truncated], [exitCode, false, false], command);
  }
});

test('the last 64 KiB of each output are kept, and truncated reports it', async (t) => {
  const daemon = await startDaemon(t);
  const whole = await daemon.exec(`head -c ${EXEC_OUTPUT_BYTES} /dev/zero | tr '\\0' a`);
  assert.deepEqual([whole.stdout, whole.truncated], ['a'.repeat(EXEC_OUTPUT_BYTES), false]);

  const long = await daemon.exec(`i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo end >&2`);
  assert.equal(long.stdout.length, EXEC_OUTPUT_BYTES);
  assert.ok(long.stdout.endsWith('line 19998\nline 19999\n'));
  assert.deepEqual([long.stderr, long.truncated], ['end\n', true]);

  const million = await daemon.exec('yes 1234567 | head -c 1000000 >&2');
  assert.equal(million.stderr, '1234567\n'.repeat(EXEC_OUTPUT_BYTES / 8));
  assert.deepEqual([million.stdout, million.truncated, million.exitCode], ['', true, 0]);
});

test('truncation leaves no half character at the front, and invalid bytes become U+FFFD', async (t) => {
  const daemon = await startDaemon(t);
  const euro = await daemon.exec(`yes € | tr -d '\\n' | head -c 300000`);
  assert.equal(euro.stdout, '€'.repeat(Math.floor(EXEC_OUTPUT_BYTES / 3)));
  assert.equal(euro.truncated, true);

  const binary = await daemon.exec(String.raw`printf 'a\377\000\303b'`);
  assert.equal(binary.stdout, 'a\u{FFFD}\0\u{FFFD}b');
  const worst = await daemon.exec(`head -c 200000 /dev/zero; head -c 200000 /dev/zero | tr '\\0' '\\377' >&2`);
  assert.equal(worst.stdout, '\0'.repeat(EXEC_OUTPUT_BYTES));
  assert.equal(worst.stderr, '\u{FFFD}'.repeat(EXEC_OUTPUT_BYTES));
});

test('output written just before the exit is in the response', async (t) => {
  const daemon = await startDaemon(t);
  for (let round = 0; round < 30; round += 1) {
    const result = await daemon.exec(`printf %s ${round}; printf %60000s e >&2`);
    assert.equal(result.stdout, String(round));
    assert.equal(result.stderr.length, 60_000);
  }
});

test('a command of a megabyte runs, although it does not fit an argument', async (t) => {
  const daemon = await startDaemon(t);
  const script = (bytes: number): string => `cat <<'END' | wc -c\n${'x'.repeat(bytes - 31)}\nEND\nexit 7`;
  for (const length of [131_000, 131_071, 131_072, EXEC_COMMAND_LENGTH]) {
    const command = script(length);
    const result = await daemon.exec(command);
    assert.deepEqual(
      [command.length, result.stdout, result.stderr, result.exitCode],
      [length, `${length - 30}\n`, '', 7],
    );
  }
});

test('50 concurrent commands each return their own output', async (t) => {
  const daemon = await startDaemon(t);
  const results = await Promise.all(
    Array.from({ length: 50 }, (_, index) => daemon.exec(`sleep 0.1; echo ${index}; echo e${index} >&2`)),
  );
  results.forEach((result, index) =>
    assert.deepEqual([result.stdout, result.stderr, result.exitCode], [`${index}\n`, `e${index}\n`, 0]),
  );
});

test('a missing code folder is reported', async (t) => {
  const daemon = await startDaemon(t);
  await rm(daemon.codeFolder, { recursive: true });
  const missing = await daemon.call('POST', '/exec', { command: 'true', timeoutSeconds: 5 });
  assert.equal(missing.status, 500);
  assert.match(missing.text, /could not be started: .*the folder .*code is missing/);
  assert.equal((await daemon.call('GET', '/health')).status, 200);
});
