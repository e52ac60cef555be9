// Commands with options: directory, variables, user and input.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, after, test, type TestContext } from 'node:test';
import type { GuestExecResult, GuestRunRequest } from '@berth/protocol/calls/exec.ts';
import { startDaemon, testUid, type Answer, type TestDaemon } from '../daemon.ts';

const isRoot = process.getuid?.() === 0;
let daemon: TestDaemon;
const ends: (() => unknown)[] = [];
before(async () => {
  daemon = await startDaemon({ after: (end: () => unknown) => void ends.push(end) } as unknown as TestContext);
});
after(async () => {
  for (const end of ends) await end();
});

function run(request: Partial<GuestRunRequest>): Promise<Answer> {
  return daemon.call('POST', '/run', { command: 'true', timeoutSeconds: 60, ...request });
}

async function outputOf(request: Partial<GuestRunRequest>): Promise<string> {
  const answer = await run(request);
  assert.equal(answer.status, 200, answer.text);
  const { stdout, stderr } = JSON.parse(answer.text) as GuestExecResult;
  assert.equal(stderr, '');
  return stdout;
}

test('without options it is an exec', async () => {
  assert.equal(
    await outputOf({ command: 'pwd; id -u; readlink /proc/$$/fd/0' }),
    `${daemon.codeFolder}\n${testUid}\n/dev/null\n`,
  );
});

test('the directory is absolute or relative to the code, and PWD says it', async () => {
  mkdirSync(join(daemon.codeFolder, 'a b/ü'), { recursive: true });
  const command = 'pwd; echo "$PWD"';
  const inside = join(daemon.codeFolder, 'a b/ü');
  assert.equal(await outputOf({ command, cwd: 'a b/ü' }), `${inside}\n${inside}\n`);
  assert.equal(await outputOf({ command, cwd: './a b/../a b/ü/' }), `${inside}\n${inside}\n`);
  assert.equal(await outputOf({ command, cwd: '/usr' }), '/usr\n/usr\n');
});

test('a directory that is missing, a file or closed is refused by name', async () => {
  writeFileSync(join(daemon.codeFolder, 'file'), '');
  const closed = isRoot ? [daemon.folder.concat('/run')] : [];
  for (const cwd of ['nowhere', '/nowhere', 'file', 'file/under', 'x'.repeat(4_000), ...closed]) {
    const { status, text } = await run({ cwd });
    assert.equal(status, 400, cwd);
    assert.equal((JSON.parse(text) as { error: { code: string } }).error.code, 'command_cwd_invalid', cwd);
  }
});

test('variables are added, and take the place of the usual ones; their bytes survive', async () => {
  const value = 'a=b "c" $d\n\tü\u0001';
  assert.equal(await outputOf({ command: 'printf %s "$ONE"', env: [`ONE=${value}`] }), value);
  assert.equal(await outputOf({ command: 'echo "[$E]$TERM$HOME"', env: ['E=', 'TERM=x', 'HOME=/h'] }), '[]x/h\n');
  const command = 'env | grep -c ^PATH=';
  assert.equal(await outputOf({ command, env: ['OTHER=1'] }), '1\n');
  assert.equal(await outputOf({ command: 'env | grep ONE= || echo none' }), 'none\n');
  const large = 'x'.repeat(65_000);
  assert.equal(await outputOf({ command: 'printf %s "$LARGE" | wc -c', env: [`LARGE=${large}`] }), '65000\n');
});

test('input arrives whole, then ends; an empty one is /dev/null', async () => {
  const stdin = 'line\n\nlast ü';
  assert.equal(await outputOf({ command: 'cat', stdin }), stdin);
  assert.equal(await outputOf({ command: 'cat /dev/stdin', stdin }), stdin);
  assert.equal(await outputOf({ command: 'wc -c', stdin: 'é'.repeat(32_768) }), '65536\n');
  assert.equal(await outputOf({ command: 'readlink /proc/$$/fd/0', stdin: '' }), '/dev/null\n');
  // Nobody reads it.
  assert.equal(await outputOf({ command: 'echo done', stdin: 'x'.repeat(65_536) }), 'done\n');
});

test('another user has its own name, home, groups and permissions', { skip: !isRoot }, async () => {
  const command =
    'id -un; echo "$USER $LOGNAME $HOME"; id -G; cd; ' +
    'touch /root/berth-probe 2>/dev/null && rm /root/berth-probe && echo root';
  assert.equal(await outputOf({ command, user: 'root' }), 'root\nroot root /root\n0\nroot\n');
  const games = await outputOf({
    command: 'id -un; echo "$HOME"; touch /root/x 2>/dev/null || echo denied',
    user: 'games',
  });
  assert.equal(games, 'games\n/usr/games\ndenied\n');
});

test('an unknown user is refused by name', async () => {
  const { status, text } = await run({ user: 'nobody-here' });
  assert.equal(status, 400);
  assert.equal((JSON.parse(text) as { error: { code: string } }).error.code, 'command_user_unknown');
});

test('a NUL character is refused, and the daemon goes on', async () => {
  for (const request of [{ command: 'a\0b' }, { cwd: '/\0' }, { env: ['A=\0'] }]) {
    const { status, text } = await run(request);
    assert.equal(status, 400);
    assert.match(text, /NUL/);
  }
  assert.equal(await outputOf({ command: 'echo on' }), 'on\n');
});

test('a timeout, a long command and an input together', async () => {
  const command = `cat; ${' '.repeat(140_000)} sleep 1000`;
  const answer = await run({ command, stdin: 'in', timeoutSeconds: 3, cwd: '/', env: ['A=b'] });
  assert.deepEqual(JSON.parse(answer.text), {
    exitCode: 124,
    stdout: 'in',
    stderr: '',
    truncated: false,
    timedOut: true,
  });
});
