// `berth exec`, `run` and `cp` on a real VM, through the real CLI: exit codes, streams, terminals,
// signals, and that ended commands leave nothing in the sandbox. Tests without a VM:
// cli/test/{exec,run,copy}.test.ts.
import assert from 'node:assert/strict';
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { PseudoTerminal } from '../../os/test/pseudo-terminal.ts';
import { awakeSandbox, exec, listSandboxes } from '../world/client.ts';
import { startInstance, type Instance } from '../world/instance.ts';
import { BERTH } from '../world/ssh-client.ts';
import { until } from '../../os/test/until.ts';

let berth: Instance;
let id: string;
let folder: string;
const children = new Set<ChildProcessWithoutNullStreams>();

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-cli-streams-'));
  berth = await startInstance('cli-streams');
  ({ id } = await awakeSandbox(berth));
});

after(async () => {
  children.forEach((child) => child.kill('SIGKILL'));
  await berth?.end();
  await rm(folder, { recursive: true, force: true });
});

interface Ended {
  code: number | null;
  stdout: Buffer;
  stderr: string;
}

const environment = (): Record<string, string | undefined> => ({
  PATH: process.env['PATH'],
  HOME: folder,
  BERTH_URL: berth.url,
  BERTH_API_KEY: berth.token,
});

/** Starts the CLI, or a shell line with the CLI as `$berth`. */
function start(...args: string[]): {
  child: ChildProcessWithoutNullStreams;
  stdout: () => string;
  ended: Promise<Ended>;
} {
  const child = spawn(args[0] === 'sh' ? 'sh' : BERTH, args[0] === 'sh' ? args.slice(1) : args, {
    cwd: folder,
    env: { ...environment(), berth: BERTH, id },
  });
  children.add(child);
  child.stdin.on('error', () => undefined);
  const stdout: Buffer[] = [];
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = once(child, 'close').then(([code]) => ({
    code: code as number | null,
    stdout: Buffer.concat(stdout),
    stderr,
  }));
  return { child, stdout: () => Buffer.concat(stdout).toString(), ended };
}

async function run(
  args: string[],
  stdin: string | Buffer = '',
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const { child, ended } = start(...args);
  child.stdin.end(stdin);
  const { code, stdout, stderr } = await ended;
  return { code, stdout: stdout.toString(), stderr };
}
const shell = (line: string): Promise<{ code: number | null; stdout: string; stderr: string }> =>
  run(['sh', '-c', line]);

const sum = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Processes of the sandbox that have a word of this test in their arguments. */
async function processesWith(word: string): Promise<string> {
  return (await exec(berth, id, `pgrep -f '[${word[0]}]${word.slice(1)}' || true`)).stdout;
}

async function assertNoProcess(word: string): Promise<void> {
  await until(`nothing runs with ${word}`, async () => ((await processesWith(word)) === '' ? true : null));
}

async function runs(word: string): Promise<void> {
  await until(`${word} runs`, async () => ((await processesWith(word)) === '' ? null : true));
}

test('exit codes: the command’s own, 124 for a timeout, 125 for Berth, 127 for no such program', async () => {
  assert.deepEqual(await run(['exec', id, '--', 'id -un; pwd; echo no >&2; exit 1']), {
    code: 1,
    stdout: 'berth\n/code\n',
    stderr: 'no\n',
  });
  assert.equal((await run(['exec', id, '--', 'true'])).code, 0);
  assert.equal((await run(['exec', id, '--', 'no-such-program', 'x'])).code, 127);
  const late = await run(['exec', '--timeout-seconds', '5', id, '--', 'echo begun; sleep 1000']);
  assert.deepEqual(late, {
    code: 124,
    stdout: 'begun\n',
    stderr: 'berth: the command was killed after 5 s (--timeout-seconds)\n',
  });
  assert.equal((await run(['exec', `sbx_${'a'.repeat(24)}`, '--', 'true'])).code, 125);
  assert.equal((await run(['exec', '-i', `sbx_${'a'.repeat(24)}`, '--', 'true'])).code, 125);
  const much = await run(['exec', id, '--', 'seq 100000']);
  assert.equal(much.stdout.length, 65_536);
  assert.match(much.stderr, /^berth: output truncated/);
  assert.equal((await run(['exec', '-i', id, '--', 'seq 100000'])).stdout.length, 588_895);
});

test('exec -i pipes stdin and both outputs, also of tar, and handles a closed reader', async () => {
  assert.deepEqual(await shell('echo hi | "$berth" exec -i "$id" -- cat'), { code: 0, stdout: 'hi\n', stderr: '' });
  await exec(berth, id, 'mkdir -p piped/in && echo 1 > piped/a && echo 2 > piped/in/b');
  assert.equal(
    (await shell('"$berth" exec -i "$id" -- tar c -C piped . | tar t | sort')).stdout,
    './\n./a\n./in/\n./in/b\n',
  );
  const gone = await shell('{ "$berth" exec -i "$id" -- sh -c "yes piped-word"; echo "code $?" >&2; } | head -n 1');
  assert.deepEqual(gone, { code: 0, stdout: 'piped-word\n', stderr: 'code 141\n' });
  await assertNoProcess('piped-word');
});

test('tens of megabytes go in and out unchanged', async () => {
  const sent = randomBytes(40_000_000);
  const { child, ended } = start('exec', '-i', id, '--', 'tee /tmp/sent');
  child.stdin.end(sent);
  const { code, stdout, stderr } = await ended;
  assert.deepEqual([code, stderr, stdout.length, sum(stdout)], [0, '', sent.length, sum(sent)]);
  assert.equal((await exec(berth, id, 'sha256sum < /tmp/sent; rm /tmp/sent')).stdout, `${sum(sent)}  -\n`);
});

test('Ctrl-C without -i and -t ends the command and everything it started', async () => {
  const { child, ended } = start('exec', id, '--', 'sleep 31415 & sleep 31415');
  await runs('31415');
  child.kill('SIGINT');
  assert.deepEqual(await ended.then(({ code, stderr }) => [code, stderr]), [130, 'berth: stopped by SIGINT\n']);
  await assertNoProcess('31415');
});

test('signals with -i reach the command; a killed client ends it and everything it started', async () => {
  for (const [name, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGUSR1', 138],
  ] as const) {
    const { child, ended } = start('exec', '-i', id, '--', 'sleep 27182 | sleep 27182');
    await runs('27182');
    child.kill(name);
    const { code: found, stderr } = await ended;
    assert.deepEqual([found, stderr], [code, ''], name);
    await assertNoProcess('27182');
  }
  const trapped = start(
    'exec',
    '-i',
    id,
    '--',
    'trap "echo caught; exit 9" TERM; echo begun; while :; do sleep 0.1; done',
  );
  await until('it runs', () => Promise.resolve(trapped.stdout() === 'begun\n' ? true : null));
  trapped.child.kill('SIGTERM');
  assert.deepEqual(await trapped.ended.then(({ code, stdout }) => [code, stdout.toString()]), [9, 'begun\ncaught\n']);
  const killed = start('exec', '-i', id, '--', 'trap "" HUP INT TERM; sleep 16181 & sleep 16181');
  await runs('16181');
  killed.child.kill('SIGKILL');
  await killed.ended;
  await assertNoProcess('16181');
});

test('exec -it follows the terminal size, sends Ctrl-C as a byte and returns the exit code', async () => {
  const screen = new PseudoTerminal(BERTH, ['exec', '-it', id, '--', 'bash', '--norc'], environment());
  await screen.shows(/\$ $/);
  await screen.resize(33, 101);
  screen.type('until [ "$(stty size)" = "33 101" ]; do sleep 0.1; done; echo "<""told>"; sleep 14142\r');
  await screen.shows('<told>');
  await runs('14142');
  const from = screen.text.length;
  screen.type('\x03');
  await screen.shows(/\$ $/, from);
  await assertNoProcess('14142');
  screen.type('exit 42\r');
  assert.equal(await screen.ended(), 42);

  const gone = new PseudoTerminal(BERTH, ['exec', '-it', id, '--', 'sleep 14143'], environment());
  await runs('14143');
  gone.hangUp();
  await assertNoProcess('14143');
  const interrupted = new PseudoTerminal(BERTH, ['exec', '-it', id, '--', 'sleep 14144'], environment());
  await runs('14144');
  interrupted.type('\x03');
  assert.equal(await interrupted.ended(), 130);
  await assertNoProcess('14144');
});

test('run uses a separate sandbox and destroys it, whatever the exit code', async () => {
  assert.deepEqual(
    await run(['run', '--name', 'once', '--', 'hostname; pwd; exit 7']).then(({ code, stderr }) => [code, stderr]),
    [7, ''],
  );
  assert.equal((await run(['run', '-i', '--', 'cat'], 'through')).stdout, 'through');
  const { child, ended } = start('run', '--', 'echo begun; sleep 1000');
  await until('it runs', async () => ((await listSandboxes(berth)).length === 2 ? true : null));
  child.kill('SIGINT');
  assert.equal((await ended).code, 130);
  await until('only the first is left', async () => {
    const left = await listSandboxes(berth);
    return left.length === 1 && left[0]?.id === id ? true : null;
  });
  const kept = await run(['run', '--keep', '--', 'true']);
  assert.equal(kept.code, 0);
  const [, keptId = ''] = /berth: kept (sbx_\w+);/.exec(kept.stderr) ?? [];
  assert.equal((await run(['sandbox', 'rm', keptId])).code, 0);
});

test('cp copies a tree and large files unchanged, and reports a full disk and a forbidden path', async () => {
  const tree = join(folder, 'tree');
  await mkdir(join(tree, 'deep'), { recursive: true });
  await writeFile(join(tree, "it's\na name"), 'x', { mode: 0o640 });
  await writeFile(Buffer.concat([Buffer.from(`${tree}/deep/`), Buffer.from([0xff])]), 'not utf-8');
  await writeFile(join(tree, 'deep/large'), randomBytes(20_000_000));
  await symlink('deep/large', join(tree, 'link'));
  await chmod(join(tree, 'deep/large'), 0o755);
  await utimes(join(tree, 'deep/large'), 1_600_000_000, 1_600_000_000);
  assert.deepEqual(await run(['cp', tree, `${id}:.`]), { code: 0, stdout: '', stderr: '' });
  assert.equal(
    (
      await exec(
        berth,
        id,
        'cat link 2>/dev/null; readlink tree/link; stat -c "%U %a %Y" tree/deep/large; ls -A | grep cp- || true',
      )
    ).stdout,
    'deep/large\nberth 755 1600000000\n',
  );
  assert.deepEqual(await run(['cp', `${id}:tree`, join(folder, 'back')]), { code: 0, stdout: '', stderr: '' });
  assert.equal(sum(await readFile(join(folder, 'back/link'))), sum(await readFile(join(tree, 'deep/large'))));
  const { mode, mtimeMs } = await stat(join(folder, 'back/deep/large'));
  assert.deepEqual([mode & 0o777, mtimeMs], [0o755, 1_600_000_000_000]);
  assert.deepEqual(
    await readdir(join(folder, 'back'), { encoding: 'buffer' }),
    await readdir(tree, { encoding: 'buffer' }),
  );

  const file = join(tree, 'deep/large');
  assert.deepEqual(await run(['cp', file, `${id}:/proc/1/x`]).then(({ code }) => code), 1);
  assert.match(
    (await run(['cp', file, `${id}:/usr/x`])).stderr,
    /^berth: sbx_\w+:\/usr\/x: permission denied: commands run as the user of the sandbox\n$/,
  );
  assert.match(
    (await run(['cp', `${id}:/etc/shadow`, folder])).stderr,
    /^berth: sbx_\w+:\/etc\/shadow: .*[Pp]ermission denied/,
  );
  assert.match((await run(['cp', `${id}:nowhere`, folder])).stderr, /nowhere: no such file or folder\n$/);
});

test('cp onto a full disk reports it, and leaves no partial file', async () => {
  await exec(berth, id, 'fallocate -l "$(($(df --output=avail -B1 /code | tail -1) - 4000000))" filler');
  const file = join(folder, 'too-large');
  await writeFile(file, randomBytes(30_000_000));
  const { code, stderr } = await run(['cp', file, `${id}:too-large`]);
  assert.deepEqual([code, stderr], [1, `berth: ${id}:too-large: the disk of the sandbox is full\n`]);
  assert.equal((await exec(berth, id, 'rm filler; ls -A | grep -E "too-large|berth-cp" || true')).stdout, '');
});
