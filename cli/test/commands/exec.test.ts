// `berth exec` in pipes, against a fake API that runs commands locally. With a real VM:
// e2e/commands/cli-streams.long.test.ts.
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { sharedOptions } from '../../src/program/program.ts';
import { execCommand } from '../../src/sandboxes/exec-spec.ts';
import { ApiServer, refusal } from '../world/api-server.ts';
import { berth, cleanEnvironment, MAIN, startBerth, type Ended } from '../world/berth.ts';
import { LocalGuest } from '../world/local-guest.ts';
import { PseudoTerminal } from '../../../os/test/pseudo-terminal.ts';
import { untilTrue } from '../../../os/test/until.ts';

let api: ApiServer;
let guest: LocalGuest;
let folder: string;
let answerJson: ApiServer['json'];
let answerSocket: ApiServer['answer'];
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-exec-'));
  api = await ApiServer.start();
  guest = new LocalGuest(folder, api);
  ({ json: answerJson, answer: answerSocket } = api);
});
after(async () => {
  api.close();
  await rm(folder, { recursive: true });
});
afterEach(() => {
  api.refuse = null;
  api.json = answerJson;
  api.answer = answerSocket;
  guest.asked.length = 0;
  guest.orders.length = 0;
});

const env = (): Record<string, string | undefined> => api.environment;
const exec = (args: readonly string[], stdin?: string | Buffer): Promise<Ended> =>
  berth(['exec', ...args], { env: env(), ...(stdin === undefined ? {} : { stdin }) });

/** Quotes a word for the shell of the test. */
function shellWord(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
const program = (): string => `${shellWord(process.execPath)} ${shellWord(MAIN)}`;

test('stdout and stderr come unchanged on their own streams, and the exit code is returned', async () => {
  assert.deepEqual(
    await exec(['sbx_abcabcabcabcabcabcabcabc', '--', 'printf "a\\tü\\033[1m"; printf err >&2; exit 7']),
    {
      code: 7,
      stdout: 'a\tü\u001b[1m',
      stderr: 'err',
    },
  );
  assert.deepEqual(await exec(['sbx_abcabcabcabcabcabcabcabc', 'true']), { code: 0, stdout: '', stderr: '' });
  assert.equal((await exec(['sbx_abcabcabcabcabcabcabcabc', '--', 'no-such-program'])).code, 127);
  assert.equal((await exec(['sbx_abcabcabcabcabcabcabcabc', '--', 'kill -TERM $$'])).code, 143);
  assert.deepEqual(
    await berth(['sandbox', 'exec', 'sbx_abcabcabcabcabcabcabcabc', '--', 'echo same'], { env: env() }),
    {
      code: 0,
      stdout: 'same\n',
      stderr: '',
    },
  );
});

test('one word is shell text; several are passed as exactly these arguments', async () => {
  assert.equal((await exec(['sbx_abcabcabcabcabcabcabcabc', '--', 'echo a  b | tr a-z A-Z'])).stdout, 'A B\n');
  const words = ['', 'a  b', "it's", '$HOME', '*', 'line\nend', 'ü"\\', '-n', '--json', '~', 'a=b', '`x`', '!', '#'];
  for (const flags of [[], ['-i']]) {
    const { stdout, stderr } = await exec([...flags, 'sbx_abcabcabcabcabcabcabcabc', 'printf', '[%s]\\n', ...words]);
    assert.deepEqual([stdout, stderr], [words.map((word) => `[${word}]\n`).join(''), '']);
  }
  assert.equal((await exec(['sbx_abcabcabcabcabcabcabcabc', '--', 'A=b', 'env'])).code, 127, 'no assignment');
});

test('--timeout-seconds is passed on; a timeout and truncated output are reported on stderr', async () => {
  const result = { exitCode: 124, stdout: 'the end\n', stderr: '', truncated: true, timedOut: true };
  api.json = (_request, body) => {
    guest.asked.push(body as { command: string });
    return result;
  };
  const { code, stdout, stderr } = await exec(['--timeout-seconds', '3', 'sbx_abcabcabcabcabcabcabcabc', '--', 'make']);
  assert.deepEqual([code, stdout], [124, 'the end\n']);
  assert.equal(
    stderr,
    'berth: output truncated to the last 64 KiB of stdout and of stderr; berth exec -i streams all of it\n' +
      'berth: the command was killed after 3 s (--timeout-seconds)\n',
  );
  assert.deepEqual(guest.asked, [{ command: 'make', timeoutSeconds: 3 }]);
  const json = await exec(['--json', 'sbx_abcabcabcabcabcabcabcabc', '--', 'make']);
  assert.deepEqual([json.code, JSON.parse(json.stdout)], [124, result]);
});

test('-w, -e and -u are passed on, and -e NAME takes the value of a variable here', async () => {
  const bodies: unknown[] = [];
  api.json = (_request, body) => {
    bodies.push(body);
    return Promise.resolve({ exitCode: 0, stdout: '', stderr: '', truncated: false, timedOut: false });
  };
  const options = ['-w', 'my app', '-e', 'A=1=2', '-e', 'LANG', '--env', 'E=', '-u', 'root'];
  const run = await berth(['exec', ...options, 'sbx_abcabcabcabcabcabcabcabc', 'true'], {
    env: { ...env(), LANG: 'C.UTF-8' },
  });
  assert.deepEqual(run, { code: 0, stdout: '', stderr: '' });
  const variables = { A: '1=2', LANG: 'C.UTF-8', E: '' };
  const own = ['--json', '--url', api.url, '--org', 'org_a', '--project', 'prj_a'];
  assert.equal((await exec([...own, 'sbx_abcabcabcabcabcabcabcabc', 'true'])).code, 0);
  assert.deepEqual(bodies, [{ command: 'true', cwd: 'my app', env: variables, user: 'root' }, { command: 'true' }]);
});

test('with -i, -w, -e and -u are passed on beside the command, whose text stays the same', async () => {
  const options = ['-w', "it's", '-e', 'A=$HOME "x"', '-e', 'B=', '-u', 'root'];
  const run = await exec(['-i', ...options, 'sbx_abcabcabcabcabcabcabcabc', '--', 'cat'], 'in');
  assert.deepEqual(run, { code: 0, stdout: 'in', stderr: '' });
  const passed = { cwd: "it's", user: 'root', 'env[A]': '$HOME "x"', 'env[B]': '' };
  assert.deepEqual(guest.asked, [{ command: 'cat', tty: 'false', ...passed }]);
});

test('a usage error is reported with exit code 2', async () => {
  for (const [args, expected] of [
    [['sbx_abcabcabcabcabcabcabcabc'], /missing required argument 'command'/],
    [['sbx_abcabcabcabcabcabcabcabc', '--'], /missing command/],
    [
      ['sbx_abcabcabcabcabcabcabcabc', '-it', 'bash'],
      /'-it' must come before the sandbox: words after it are the command\n {2}berth exec -it sbx_abcabcabcabcabcabcabcabc/,
    ],
    [
      ['sbx_abcabcabcabcabcabcabcabc', '--timeout-seconds', '60', '--', 'x'],
      /\n {2}berth exec --timeout-seconds 60 sbx_abcabcabcabcabcabcabcabc -- COMMAND\n/,
    ],
    [
      ['sbx_abcabcabcabcabcabcabcabc', '-i', '--timeout-seconds', '60', 'x'],
      /\n {2}berth exec -i --timeout-seconds 60 sbx_abcabcabcabcabcabcabcabc -- COMMAND\n/,
    ],
    [
      ['sbx_abcabcabcabcabcabcabcabc', '--timeout-seconds=60', 'x', '-l'],
      /\n {2}berth exec --timeout-seconds=60 sbx_abcabcabcabcabcabcabcabc -- COMMAND\n/,
    ],
    [
      ['sbx_abcabcabcabcabcabcabcabc', '-t', '$(x)', '--', 'y'],
      /\n {2}berth exec -t '\$\(x\)' sbx_abcabcabcabcabcabcabcabc -- COMMAND\n/,
    ],
    [['', 'true'], /invalid sandbox ''/],
    [['--timeout-seconds', '0', 'sbx_abcabcabcabcabcabcabcabc', 'true'], /must be a whole number from 1 to 600/],
    [
      ['-i', '--timeout-seconds', '9', 'sbx_abcabcabcabcabcabcabcabc', 'true'],
      /--timeout-seconds cannot be combined with -i or -t.*\n.*: berth exec -i sbx_abcabcabcabcabcabcabcabc -- timeout 9 COMMAND\n/,
    ],
    [
      ['-it', '--timeout-seconds', '9', 'sbx_abcabcabcabcabcabcabcabc', 'true'],
      /: berth exec -it sbx_abcabcabcabcabcabcabcabc -- timeout 9 COMMAND\n/,
    ],
    [
      ['--env', 'BERTH_NOT_SET_HERE', 'sbx_abcabcabcabcabcabcabcabc', 'id'],
      /NAME=VALUE, or the name of a variable that is set here/,
    ],
    [['--env', '=x', 'sbx_abcabcabcabcabcabcabcabc', 'id'], /must be key=value/],
    [
      ['sbx_abcabcabcabcabcabcabcabc', '-w', 'app', '-e', 'A=b c', 'x'],
      /\n {2}berth exec -w app -e 'A=b c' sbx_abcabcabcabcabcabcabcabc -- COMMAND\n/,
    ],
    [['-i', '--json', 'sbx_abcabcabcabcabcabcabcabc', 'true'], /--json cannot be combined with -i or -t/],
    [
      ['-it', 'sbx_abcabcabcabcabcabcabcabc', 'bash'],
      /-t requires a terminal, but stdin is not one\n {2}use -i without -t to pass stdin/,
    ],
    [['-i', 'sbx_abcabcabcabcabcabcabcabc', 'x'.repeat(15_000)], /command too long: 15008 bytes/],
    [['--ti', 'sbx_abcabcabcabcabcabcabcabc', 'true'], /unknown option '--ti'/],
  ] as const) {
    const { code, stdout, stderr } = await exec(args);
    assert.deepEqual([code, stdout], [2, ''], args.join(' '));
    assert.match(stderr, expected);
  }
  assert.deepEqual(guest.asked, []);
});

test('a suggestion keeps every option typed after the sandbox id, with its value, for a shell', async () => {
  const options = [...(execCommand.options ?? []), ...sharedOptions({ json: true })].flatMap(({ flags }) => {
    const [, name = '', value] = /(--[a-z-]+)( <.*)?$/.exec(flags) ?? [];
    return value === undefined ? [name] : [name, name === '--timeout-seconds' ? '60' : "it's $HOME"];
  });
  assert.ok(options.includes("it's $HOME"));
  for (const command of [
    ['ls', '-l'],
    ['--', 'ls', '-l'],
  ]) {
    const { stderr } = await exec(['sbx_abcabcabcabcabcabcabcabc', ...options, ...command]);
    const [, hint = ''] = /\n {2}(berth .*)\n/.exec(stderr) ?? [];
    const words = execFileSync('sh', ['-c', `printf '%s\\n' ${hint}`], { encoding: 'utf8' })
      .trimEnd()
      .split('\n');
    assert.deepEqual(words, ['berth', 'exec', ...options, 'sbx_abcabcabcabcabcabcabcabc', '--', 'COMMAND']);
  }
});

test('a command that fails after the status of its response is exit code 125 with the reason', async () => {
  const { body } = refusal(409, 'sandbox_state_conflict', 'the sandbox is sleeping');
  api.json = async (_request, _asked, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write(`  ${body}`, () => response.destroy());
    await once(response, 'close');
  };
  for (const flags of [[], ['--json']]) {
    assert.deepEqual(await exec([...flags, 'sbx_abcabcabcabcabcabcabcabc', 'true']), {
      code: 125,
      stdout: '',
      stderr:
        'berth: the sandbox is sleeping (sandbox_state_conflict)\n' +
        '  wait with berth sandbox wait, or wake the sandbox with berth sandbox wake\n',
    });
  }
});

test('a command in a failed sandbox refers to its logs and to a wake, not to a wait', async () => {
  api.refuse = refusal(409, 'sandbox_state_conflict', 'the sandbox is failed (its VM was lost); it must be ready');
  const { code, stderr } = await exec(['sbx_abcabcabcabcabcabcabcabc', 'true']);
  api.refuse = null;
  assert.deepEqual(
    [code, stderr],
    [
      125,
      'berth: the sandbox is failed (its VM was lost); it must be ready (sandbox_state_conflict)\n' +
        '  berth logs sbx_abcabcabcabcabcabcabcabc shows why; ' +
        'berth sandbox wake sbx_abcabcabcabcabcabcabcabc starts it if its disk remains\n',
    ],
  );
});

test('a failure of Berth is exit code 125, with and without streams', async () => {
  api.refuse = refusal(409, 'sandbox_state_conflict', 'the sandbox is stopped');
  for (const flags of [[], ['-i'], ['--json']]) {
    assert.deepEqual(await exec([...flags, 'sbx_abcabcabcabcabcabcabcabc', 'true']), {
      code: 125,
      stdout: '',
      stderr:
        'berth: the sandbox is stopped (sandbox_state_conflict)\n' +
        '  wait with berth sandbox wait, or wake the sandbox with berth sandbox wake\n',
    });
  }
  api.refuse = null;
  api.answer = (socket) => socket.close(4409, 'sandbox_state_conflict');
  assert.deepEqual(await exec(['-i', 'sbx_abcabcabcabcabcabcabcabc', 'true']), {
    code: 125,
    stdout: '',
    stderr:
      'berth: the connection to the command was closed: the sandbox is no longer awake (sandbox_state_conflict)\n' +
      '  wait with berth sandbox wait, or wake the sandbox with berth sandbox wake\n',
  });
  for (const frame of [Buffer.from([3, 65]), Buffer.from([1, 65])]) {
    api.answer = (socket) => {
      socket.send(frame);
      socket.once('message', () => socket.close(1000));
    };
    const { code, stderr } = await exec(['-i', 'sbx_abcabcabcabcabcabcabcabc', 'true']);
    assert.equal(code, 125);
    assert.match(stderr, frame[0] === 3 ? /neither stdout nor stderr/ : /was closed: the server closed the connection/);
  }
  assert.equal(
    (await berth(['exec', 'sbx_abcabcabcabcabcabcabcabc', 'true'], { env: { ...env(), BERTH_API_KEY: '' } })).code,
    125,
  );
});

test('-i passes binary stdin to its end, and both output streams', async () => {
  assert.deepEqual(await exec(['-i', 'sbx_abcabcabcabcabcabcabcabc', '--', 'cat; echo there >&2; exit 3'], 'hi\n'), {
    code: 3,
    stdout: 'hi\n',
    stderr: 'there\n',
  });
  assert.deepEqual(guest.asked.at(-1), { command: 'cat; echo there >&2; exit 3', tty: 'false' });
  const sent = randomBytes(48_000_000);
  const child = spawn(process.execPath, [MAIN, 'exec', '-i', 'sbx_abcabcabcabcabcabcabcabc', '--', 'cat'], {
    env: cleanEnvironment(env()),
  });
  child.stdin.end(sent);
  const sum = createHash('sha256');
  let bytes = 0;
  child.stdout.on('data', (chunk: Buffer) => {
    sum.update(chunk);
    bytes += chunk.length;
  });
  assert.equal(((await once(child, 'close')) as [number])[0], 0);
  assert.deepEqual([bytes, sum.digest('hex')], [sent.length, createHash('sha256').update(sent).digest('hex')]);
});

test('-i exits with the command although stdin is open, and the command may ignore its input', async () => {
  const { ended } = startBerth(['exec', '-i', 'sbx_abcabcabcabcabcabcabcabc', '--', 'echo done'], { env: env() });
  assert.deepEqual(await ended, { code: 0, stdout: 'done\n', stderr: '' });
  assert.deepEqual(
    await exec(['-i', 'sbx_abcabcabcabcabcabcabcabc', '--', 'head -c 3'], randomBytes(5_000_000).fill('x')),
    {
      code: 0,
      stdout: 'xxx',
      stderr: '',
    },
  );
});

test('without -i the command has empty stdin', async () => {
  assert.deepEqual(await shell(`echo lost | ${program()} exec sbx_abcabcabcabcabcabcabcabc -- cat`), {
    stdout: '',
    stderr: '',
  });
});

test('signals to berth reach the command, and its exit code is returned', async () => {
  for (const [name, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
    ['SIGQUIT', 131],
    ['SIGUSR1', 138],
    ['SIGUSR2', 140],
  ] as const) {
    const { child, seen, ended } = startBerth(
      ['exec', '-i', 'sbx_abcabcabcabcabcabcabcabc', '--', 'echo begun; exec sleep 1000'],
      {
        env: env(),
      },
    );
    await untilTrue(`${name}: it runs`, () => seen.stdout === 'begun\n');
    child.kill(name);
    assert.deepEqual(await ended, { code, stdout: 'begun\n', stderr: '' }, name);
    assert.deepEqual(guest.orders.at(-1), { signal: name });
  }
});

test('a second signal stops berth and ends a command that ignored the first', async () => {
  const { child, seen, ended } = startBerth(
    ['exec', '-i', 'sbx_abcabcabcabcabcabcabcabc', '--', 'trap "echo no" INT; echo begun; while :; do sleep 1; done'],
    {
      env: env(),
    },
  );
  await untilTrue('it runs', () => seen.stdout === 'begun\n');
  child.kill('SIGINT');
  await untilTrue('it refuses', () => seen.stdout === 'begun\nno\n');
  child.kill('SIGINT');
  assert.deepEqual(await ended, { code: 130, stdout: 'begun\nno\n', stderr: 'berth: stopped by SIGINT\n' });
  await untilTrue('nothing runs', () => guest.running.size === 0);
});

for (const flags of [[], ['-i']]) {
  test(`SIGKILL of berth ends the command${flags.length > 0 ? ' with -i' : ''}, SIGINT also without -i`, async () => {
    for (const name of ['SIGKILL', ...(flags.length > 0 ? [] : ['SIGINT' as const])] as const) {
      const { child, ended } = startBerth(['exec', ...flags, 'sbx_abcabcabcabcabcabcabcabc', '--', 'sleep 1000'], {
        env: env(),
      });
      await untilTrue('it runs', () => guest.running.size === 1);
      child.kill(name);
      const { code, stderr } = await ended;
      assert.deepEqual([code, stderr], name === 'SIGKILL' ? [null, ''] : [130, 'berth: stopped by SIGINT\n']);
      await untilTrue('nothing runs', () => guest.running.size === 0);
    }
  });
}

test('a closed output pipe ends berth silently, and the command', async () => {
  for (const command of [
    'exec -i sbx_abcabcabcabcabcabcabcabc -- yes',
    "exec sbx_abcabcabcabcabcabcabcabc -- 'yes | head -c 500000'",
  ]) {
    const { stdout, stderr } = await shell(`{ ${program()} ${command}; echo "code $?" >&2; } | head -n 1`);
    assert.deepEqual([stdout, stderr], ['y\n', 'code 141\n']);
  }
  await untilTrue('nothing runs', () => guest.running.size === 0);
});

/** Runs a shell line without blocking the server in this process. */
function shell(line: string): Promise<{ stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile('/bin/sh', ['-c', line], { env: cleanEnvironment(env()) }, (_error, stdout, stderr) =>
      resolve({ stdout, stderr }),
    );
  });
}

test('a slow reader blocks the command', async () => {
  const child = spawn(
    process.execPath,
    [MAIN, 'exec', '-i', 'sbx_abcabcabcabcabcabcabcabc', '--', 'head -c 60000000 /dev/zero; echo written >&2'],
    {
      env: cleanEnvironment(env()),
    },
  );
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  await untilTrue('the server has to wait', () => guest.heldBack);
  assert.equal(stderr, '');
  let bytes = 0;
  child.stdout.on('data', (chunk: Buffer) => (bytes += chunk.length));
  assert.equal(((await once(child, 'close')) as [number])[0], 0);
  assert.deepEqual([bytes, stderr], [60_000_000, 'written\n']);
});

test('in a terminal without -t Ctrl-C sends a signal to the command', async () => {
  const screen = new PseudoTerminal(
    process.execPath,
    [MAIN, 'exec', '-i', 'sbx_abcabcabcabcabcabcabcabc', '--', 'echo begun; exec sleep 1000'],
    cleanEnvironment(env()),
  );
  await screen.shows('begun\r\n');
  screen.type('\x03');
  assert.equal(await screen.ended(), 130);
  assert.deepEqual(guest.orders.at(-1), { signal: 'SIGINT' });
});

test('-it connects the terminals: size, keys as bytes, signals, exit code', async () => {
  const opened = Promise.withResolvers<{
    url: string | undefined;
    typed: () => string;
    orders: unknown[];
    end: (exit: number) => void;
  }>();
  api.answer = (socket, { url }) => {
    let typed = '';
    const orders: unknown[] = [];
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) typed += data.toString('latin1');
      else orders.push(JSON.parse(data.toString()));
    });
    socket.send(Buffer.from('ready'));
    const end = (exit: number): void => {
      socket.send(JSON.stringify({ exit }));
      socket.close(1000);
    };
    opened.resolve({ url, typed: () => typed, orders, end });
  };
  const screen = new PseudoTerminal(
    process.execPath,
    [MAIN, 'exec', '-it', 'sbx_abcabcabcabcabcabcabcabc', '--', 'vim', 'a file'],
    cleanEnvironment(env()),
  );
  const remote = await opened.promise;
  await screen.shows('ready');
  const query = new URL(remote.url ?? '', 'http://api').searchParams;
  assert.equal(query.get('command'), "vim 'a file'");
  assert.equal(query.get('tty'), null, 'it is so by default');
  await screen.resize(33, 101);
  await untilTrue('the size comes', () => JSON.stringify(remote.orders.at(-1)) === '{"resize":{"cols":101,"rows":33}}');
  screen.type('\x03\x1a');
  await untilTrue('keys are bytes', () => remote.typed() === '\x03\x1a');
  process.kill(await screen.program(), 'SIGTERM');
  await untilTrue('a signal is an order', () => JSON.stringify(remote.orders.at(-1)) === '{"signal":"SIGTERM"}');
  remote.end(143);
  assert.equal(await screen.ended(), 143);
});
