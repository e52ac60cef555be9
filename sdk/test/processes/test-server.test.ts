// Processes of the test server beyond the service: their scripts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BerthError, type Sandbox } from '../../src/index.ts';
import { TestServer, type TestServerOptions } from '../../src/testing/index.ts';

async function sandboxOf(options: TestServerOptions): Promise<[Sandbox, TestServer]> {
  const server = new TestServer(options);
  return [await server.client().sandboxes.create({ agent: 'agent_one' }), server];
}

async function outputOf(sandbox: Sandbox, command: string | string[], options = {}): Promise<unknown[]> {
  const process = await sandbox.spawn(command, options);
  const texts: string[] = [];
  for await (const { stream, text } of process.output()) texts.push(`${stream} ${text}`);
  const { exitCode, signal, reason } = await process.exited;
  return [texts, exitCode, signal, reason];
}

test('without a script, exec runs the commands of processes', async () => {
  const [sandbox] = await sandboxOf({
    exec: (command, { stdin, timeoutSeconds, cwd }) => {
      if (command === 'late') return { timedOut: true };
      if (command === 'text') return 'plain';
      return { stdout: `${command} ${stdin} ${timeoutSeconds} ${cwd}`, stderr: 'noise', exitCode: 3 };
    },
  });
  const texts = ['stdout make all undefined 120 app', 'stderr noise'];
  assert.deepEqual(await outputOf(sandbox, ['make', 'all'], { cwd: 'app' }), [texts, 3, null, null]);
  assert.deepEqual(await outputOf(sandbox, 'late'), [[], 124, 'SIGKILL', 'timed_out']);
  assert.deepEqual(await outputOf(sandbox, 'text'), [['stdout plain'], 0, null, null]);
  const seen: string[] = [];
  const { stdout, stderr, exitCode } = await sandbox.exec('make', {
    stdin: 'typed',
    timeoutSeconds: 7,
    onStdout: (text) => void seen.push(text),
  });
  assert.deepEqual([stdout, stderr, exitCode, seen], ['make typed 7 undefined', 'noise', 3, [stdout]]);
});

test('a script reads input, writes output over time and returns the exit code', async () => {
  const [sandbox] = await sandboxOf({
    process: async ({ stdin, stdout, stderr, request }) => {
      stdout(`started in ${request.cwd}\n`);
      const decoder = new TextDecoder();
      for await (const bytes of stdin) stdout(`echo ${decoder.decode(bytes)}`);
      stderr(Uint8Array.of(0));
      return 5;
    },
  });
  const process = await sandbox.spawn('cat', { stdin: true, cwd: 'app' });
  const input = process.stdin.getWriter();
  const texts: string[] = [];
  for await (const { text } of process.output()) {
    texts.push(text);
    if (texts.length === 1) await input.write('hello');
    else if (texts.length === 2) await input.close();
  }
  assert.deepEqual(texts, ['started in app\n', 'echo hello', '\0']);
  assert.equal((await process.exited).exitCode, 5);
});

test('a script that throws exits with 1, and writes to a terminal if it has one', async () => {
  const [sandbox, server] = await sandboxOf({
    process: ({ stdout, stderr }) => {
      stdout('a');
      stderr('b');
      throw new Error('a fault of the script');
    },
  });
  assert.deepEqual(await outputOf(sandbox, 'x', { tty: true }), [['output ab'], 1, null, null]);
  server.process = () => ({ signal: 'SIGSEGV' });
  assert.deepEqual(await outputOf(sandbox, 'x'), [[], 139, 'SIGSEGV', null]);
});

test('signals end a process, unless its script takes them', async () => {
  const aborted: string[] = [];
  const [sandbox] = await sandboxOf({
    process: async ({ command, signal, onSignal, stdout }) => {
      signal.addEventListener('abort', () => aborted.push(command));
      const stopped = new Promise<string>((resolve) => {
        if (command === 'graceful') onSignal(resolve);
      });
      stdout(`stopped by ${await stopped}`);
      return 0;
    },
  });
  const graceful = await sandbox.spawn('graceful');
  await graceful.kill('SIGTERM');
  assert.deepEqual((await graceful.exited).exitCode, 0);
  const plain = await sandbox.spawn('plain');
  await plain.kill('SIGWINCH');
  assert.equal(plain.data.status, 'running');
  await plain.kill('SIGINT');
  assert.deepEqual(await plain.exited, { exitCode: 130, signal: 'SIGINT', reason: null });
  const stubborn = await sandbox.spawn('graceful');
  await stubborn.kill('SIGKILL');
  assert.equal((await stubborn.exited).exitCode, 137);
  assert.deepEqual(aborted, ['plain', 'graceful']);
});

test('a lost VM loses its processes, which are there after the wake', async () => {
  const [sandbox, server] = await sandboxOf({
    process: ({ stdout, signal }) => {
      stdout('before');
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve(0)));
    },
  });
  const process = await sandbox.spawn('serve');
  server.loseMachine(sandbox.id);
  await sandbox.wake();
  assert.deepEqual(await process.exited, { exitCode: null, signal: null, reason: 'lost' });
  for await (const { text } of process.output()) assert.equal(text, 'before');
});

test('256 processes of a sandbox may run', async () => {
  const [sandbox] = await sandboxOf({ process: () => new Promise(() => undefined) });
  for (let one = 0; one < 256; one += 1) await sandbox.spawn('serve');
  await assert.rejects(
    sandbox.spawn('serve', { timeoutMs: 1_000 }),
    (error: unknown) => error instanceof BerthError && error.code === 'process_limit' && error.retryable,
  );
});
