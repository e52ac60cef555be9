// Ends of commands: exit with background processes, timeout, disconnect of the caller.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { runs, startDaemon, until } from '../daemon.ts';

/** Runs from before the shell's start; the shell must be at its `sleep` when it expires. */
const SECONDS = 5;
const SECONDS_FOR_FIFTY = 10;

async function openFiles(pid: number): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`)).length;
}

test('a background child that holds the pipes neither delays the response nor ends with it', async (t) => {
  const daemon = await startDaemon(t);
  const before = await openFiles(daemon.pid);
  const result = await daemon.exec('sleep 1000 & echo $! > child; echo hi');
  assert.deepEqual([result.stdout, result.exitCode, result.timedOut], ['hi\n', 0, false]);
  const child = await daemon.number('child');
  assert.equal(await runs(child), true);
  await daemon.exec(`kill ${child}`);
  await until('the child is gone', async () => !(await runs(child)));
  await until('its pipes are closed', async () => (await openFiles(daemon.pid)) <= before + 2);
});

test('a leftover process can keep writing; its output is discarded', async (t) => {
  const daemon = await startDaemon(t);
  const result = await daemon.exec(
    '(head -c 3000000 /dev/zero; echo $? > written; exec sleep 1000) & echo $! > child; echo hi >&2',
  );
  assert.equal(result.stderr, 'hi\n');
  const child = await daemon.number('child');
  await until(
    'all is written',
    async () => (await readFile(`${daemon.codeFolder}/written`, 'utf8').catch(() => '')) === '0\n',
  );
  assert.equal(await runs(child), true);
  await daemon.exec(`kill ${child}`);
});

test('a child that floods the pipe when the shell exits does not delay the response', async (t) => {
  const daemon = await startDaemon(t);
  const result = await daemon.exec('yes & echo $! > child; exit 4');
  assert.equal(result.exitCode, 4);
  await daemon.exec(`kill ${await daemon.number('child')}`);
});

test('outputs held by background processes are limited: the oldest is closed', async (t) => {
  const daemon = await startDaemon(t, { BERTH_GUEST_MAX_LEFT_OPEN: '4' });
  await daemon.exec('(while echo x; do sleep 0.01; done; sleep 1000) & echo $! > first');
  const first = await daemon.number('first');
  for (let round = 0; round < 2; round += 1) {
    assert.equal(await runs(first), true);
    await daemon.exec(`sleep 1000 & echo $! > later${round}`);
  }
  await until('the first is ended by SIGPIPE', async () => !(await runs(first)));
  for (let round = 0; round < 2; round += 1) {
    const later = await daemon.number(`later${round}`);
    assert.equal(await runs(later), true);
    await daemon.exec(`kill ${later}`);
  }
});

test('a timeout kills the whole process group despite ignored signals, and keeps partial output', async (t) => {
  const daemon = await startDaemon(t);
  const result = await daemon.exec(
    'trap "" TERM INT HUP; (trap "" TERM; while :; do sleep 1000; done) & ' +
      'echo $! > child; echo $$ > shell; echo part; echo e >&2; wait',
    SECONDS,
  );
  assert.deepEqual(result, { exitCode: 124, stdout: 'part\n', stderr: 'e\n', truncated: false, timedOut: true });
  for (const name of ['child', 'shell']) {
    const pid = await daemon.number(name);
    await until(`${name} is gone`, async () => !(await runs(pid)));
  }
});

test('a child in its own session outlives the timeout of its command', async (t) => {
  const daemon = await startDaemon(t);
  const result = await daemon.exec("setsid sh -c 'echo $$ > child; exec sleep 1000' & sleep 1000", SECONDS);
  assert.equal(result.timedOut, true);
  const child = await daemon.number('child');
  assert.equal(await runs(child), true);
  await daemon.exec(`kill ${child}`);
});

test('50 concurrent commands all end at their timeout', async (t) => {
  const daemon = await startDaemon(t);
  const results = await Promise.all(
    Array.from({ length: 50 }, (_, index) =>
      daemon.exec(`trap "" TERM; echo ${index}; sleep 1000 & sleep 1000; echo never`, SECONDS_FOR_FIFTY),
    ),
  );
  results.forEach((result, index) =>
    assert.deepEqual(result, { exitCode: 124, stdout: `${index}\n`, stderr: '', truncated: false, timedOut: true }),
  );
});

for (const [how, leave] of [
  ['breaks the connection off', 'destroy'],
  ['ends its side of the connection', 'end'],
] as const) {
  test(`a caller that ${how} ends the process group`, async (t) => {
    const daemon = await startDaemon(t);
    const body = JSON.stringify({
      command: 'echo $$ > shell; sleep 1000 & echo $! > child; sleep 1000',
      timeoutSeconds: 60,
    });
    const { request, answer } = daemon.open('POST', '/exec', body);
    const [shell, child] = [await daemon.number('shell'), await daemon.number('child')];
    const gone = assert.rejects(answer);
    request.socket?.[leave]();
    for (const pid of [shell, child]) await until('the group is gone', async () => !(await runs(pid)));

    request.destroy();
    await gone;
  });
}

test('a caller that leaves after the response ends nothing', async (t) => {
  const daemon = await startDaemon(t);
  const { request, answer } = daemon.open(
    'POST',
    '/exec',
    JSON.stringify({ command: 'sleep 1000 & echo $! > child', timeoutSeconds: 60 }),
  );
  await answer;
  request.destroy();
  const child = await daemon.number('child');
  await daemon.exec('true');
  assert.equal(await runs(child), true);
  await daemon.exec(`kill ${child}`);
});

test('response headers are sent at once, then spaces until the result', async (t) => {
  const daemon = await startDaemon(t, { BERTH_GUEST_SPACE_EVERY_MS: '20' });
  const { request, answer } = daemon.open(
    'POST',
    '/exec',
    JSON.stringify({ command: 'while [ ! -e go ]; do sleep 0.01; done; echo done', timeoutSeconds: 60 }),
  );
  let headers = false;
  let early = '';
  request.once('response', (response) => {
    headers = response.statusCode === 200;
    response.on('data', (chunk: Buffer) => (early += chunk.toString()));
  });
  await until('five spaces came', () => early.length >= 5);
  assert.deepEqual([headers, early.trim()], [true, '']);
  await daemon.exec('touch go');
  const { text } = await answer;
  assert.equal(text.indexOf('{') >= 5, true);
  assert.equal((JSON.parse(text) as { stdout: string }).stdout, 'done\n');
});

test('commands above the limit are refused until one exits, and a stopping daemon ends them all', async (t) => {
  const daemon = await startDaemon(t, { BERTH_GUEST_MAX_RUNNING: '3' });
  const command = (name: number): string =>
    JSON.stringify({ command: `echo $$ > p${name}; exec sleep 1000`, timeoutSeconds: 60 });
  const running = [0, 1, 2].map((name) => daemon.open('POST', '/exec', command(name)));
  const pids = await Promise.all([0, 1, 2].map((name) => daemon.number(`p${name}`)));
  const refused = await daemon.call('POST', '/exec', { command: 'true', timeoutSeconds: 5 });
  assert.equal(refused.status, 429);
  assert.match(refused.text, /3 commands are running/);

  const [first, ...rest] = running.map(({ answer }) => assert.rejects(answer));
  running[0]?.request.destroy();
  await first;
  await until(
    'there is room',
    async () => (await daemon.call('POST', '/exec', { command: 'true', timeoutSeconds: 5 })).status === 200,
  );
  await daemon.stop('SIGTERM');
  await Promise.all(rest);
  for (const pid of pids) await until('the command is gone', async () => !(await runs(pid)));
});

test('200 concurrent commands all finish and leave nothing open', async (t) => {
  const daemon = await startDaemon(t);
  const before = await openFiles(daemon.pid);
  const results = await Promise.all(Array.from({ length: 200 }, (_, index) => daemon.exec(`echo ${index}`)));
  results.forEach((result, index) => assert.equal(result.stdout, `${index}\n`));
  await until('everything is closed', async () => (await openFiles(daemon.pid)) <= before + 2);
});
