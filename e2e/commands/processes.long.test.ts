// Processes in a real VM: they outlive their callers, every daemon and a sleep, and each byte of
// their output is read once.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Berth, type ProcessOutput, type Sandbox } from '@berth/sdk';
import { enterPrivateHost } from '../../host/test/vm/private-host.ts';
import { untilTrue } from '../../os/test/until.ts';
import { awakeSandbox, destroySandbox } from '../world/client.ts';
import { GUEST_DAEMON } from '../world/guest-daemon.ts';
import { leftoversOf } from '../world/leftovers.ts';
import { Parts } from '../world/parts.ts';

enterPrivateHost();

let parts: Parts;
let sandbox: Sandbox;

before(async () => {
  parts = await Parts.start();
  const { url, token } = parts.caller;
  const { id } = await awakeSandbox(parts.caller);
  sandbox = await new Berth({ url, apiKey: token }).sandboxes.get(id);
});

after(async () => {
  try {
    if (sandbox !== undefined) await destroySandbox(parts.caller, sandbox.id);
    await parts?.stop();
    if (parts !== undefined) assert.deepEqual(await leftoversOf(parts.dataFolder), []);
  } finally {
    await parts?.remove();
  }
});

const run = async (command: string): Promise<string> => (await sandbox.exec(command).orThrow()).stdout;

async function textOf(output: AsyncIterable<ProcessOutput>): Promise<string> {
  let text = '';
  for await (const chunk of output) {
    assert.equal(chunk.lostBytes, 0);
    text += chunk.text;
  }
  return text;
}

test('a process runs with its options, and its end is kept', async () => {
  const line = await sandbox.spawn('echo "$WORD"; pwd; id -un >&2; kill -TERM $$', {
    cwd: '/tmp',
    env: { WORD: 'a  b' },
    user: 'root',
  });
  assert.deepEqual(await line.exited, { exitCode: 143, signal: 'SIGTERM', reason: null });
  const read = new Map<string, string>();
  for await (const { stream, text } of line.output()) read.set(stream, (read.get(stream) ?? '') + text);
  assert.deepEqual(Object.fromEntries(read), { stdout: 'a  b\n/tmp\n', stderr: 'root\n' });
  const program = await sandbox.spawn(['printf', '%s|', 'a b', '*']);
  assert.equal(await textOf(program.output()), 'a b|*|');
  const found = await sandbox.processes.list();
  assert.deepEqual(
    found.map(({ id }) => id),
    [program.id, line.id],
  );
});

test('a program in a terminal has its size, and reads what is typed', async () => {
  const process = await sandbox.spawn('stty size; read answer; echo "<$answer>"; stty size; exit 3', {
    tty: true,
    cols: 100,
    rows: 30,
  });
  await process.resize({ cols: 90, rows: 20 });
  const input = process.stdin.getWriter();
  await input.write('typed\r');
  const text = await textOf(process.output());
  assert.match(text, /<typed>\r\n20 90\r\n$/);
  assert.equal((await process.exited).exitCode, 3);
});

test('a process that the kernel killed for its memory says so', async () => {
  const process = await sandbox.spawn(
    'echo 1000 > /proc/self/oom_score_adj; exec python3 -c "a = []\nwhile True: a.append(bytearray(1 << 24))"',
  );
  const { signal, reason, exitCode } = await process.wait({ timeoutMs: 300_000 });
  assert.deepEqual([signal, reason, exitCode], ['SIGKILL', 'out_of_memory', 137]);
});

test('each byte is read once, in order, through the end of every daemon and a sleep', async () => {
  const lines = 3_000;
  const process = await sandbox.spawn(
    `python3 -c 'import time\nfor n in range(${lines}): print("%07d" % n, flush=True); time.sleep(0.01)'; exit 5`,
  );
  const retried: string[] = [];
  let text = '';
  const reading = (async () => {
    for await (const chunk of process.output({ onRetry: ({ code }) => void retried.push(code) })) {
      assert.equal(chunk.lostBytes, 0);
      text += chunk.text;
    }
  })();
  reading.catch(() => undefined);
  const grows = async (): Promise<void> => {
    const { length } = text;
    await untilTrue('output goes on', () => text.length > length);
  };
  await grows();
  for (const part of ['host', 'api'] as const) {
    await parts.kill(part);
    await parts.run(part);
    await grows();
  }
  const daemon = await run(`echo ${GUEST_DAEMON}`);
  await sandbox.exec(`sudo -n kill -9 ${GUEST_DAEMON}`).catch(() => undefined);
  await grows();
  assert.notEqual(await run(`echo ${GUEST_DAEMON}`), daemon);
  await sandbox.sleep();
  await sandbox.wake();
  await grows();
  await reading;
  assert.equal(text, Array.from({ length: lines }, (_, n) => `${String(n).padStart(7, '0')}\n`).join(''));
  assert.deepEqual(await process.exited, { exitCode: 5, signal: null, reason: null });
  assert.ok(retried.includes('sandbox_state_conflict'), retried.join());
});

test('input arrives once, and its end ends the program', async () => {
  const process = await sandbox.spawn('sha256sum; echo over', { stdin: true });
  const input = process.stdin.getWriter();
  await input.write('x'.repeat(1_500_000));
  await sandbox.sleep();
  await sandbox.wake();
  await input.write('end\n');
  await input.close();
  const expected = await run(`{ head -c 1500000 /dev/zero | tr '\\0' x; echo end; } | sha256sum`);
  assert.equal(await textOf(process.output()), `${expected}over\n`);
});

test('a command passes its output on while it runs, and leaves no process', async () => {
  const before = (await sandbox.processes.list()).length;
  const heard: string[] = [];
  const release = 'until [ -e /tmp/heard ]; do sleep 0.1; done';
  const result = await sandbox.exec(`echo first; ${release}; echo second >&2; (sleep 300 &); exit 4`, {
    onStdout: async (text) => {
      heard.push(text);
      await run('touch /tmp/heard');
    },
    onStderr: (text) => void heard.push(text),
  });
  assert.deepEqual(heard, ['first\n', 'second\n']);
  assert.deepEqual([result.exitCode, result.stdout, result.stderr], [4, 'first\n', 'second\n']);
  assert.equal((await sandbox.processes.list()).length, before);
});

test('after a start from the disk, a process that ran is lost, and what it wrote is there', async () => {
  const process = await sandbox.spawn('echo written; sync; sleep 1000');
  await untilTrue('it is written', async () => {
    return (await textOf(process.output({ follow: false }))) === 'written\n';
  });
  await run('sudo -n sync; (sleep 0.2; echo b | sudo -n tee /proc/sysrq-trigger) >/dev/null 2>&1 &');
  await sandbox.waitUntil('failed');
  await sandbox.wake();
  await process.refresh();
  const { status, exitCode, reason } = process.data;
  assert.deepEqual([status, exitCode, reason], ['exited', null, 'lost']);
  assert.equal(await textOf(process.output()), 'written\n');
});
