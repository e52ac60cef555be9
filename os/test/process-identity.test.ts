import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import type { ProcessIdentity } from '../src/process-identity.ts';
import { endProcess, isSame, killProcess, processExited, readProcess } from '../src/process-identity.ts';

async function start(...argv: [string, ...string[]]): Promise<{ child: ChildProcess; identity: ProcessIdentity }> {
  const child = spawn(argv[0], argv.slice(1), { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  await once(child, 'spawn');
  assert.ok(child.pid);
  const identity = await readProcess(child.pid);
  assert.ok(identity);
  return { child, identity };
}

test('a living process is identified; another start time or boot is another process', async () => {
  const { identity } = await start('sleep', '60');
  assert.equal(await isSame(identity), true);
  assert.equal(await isSame({ ...identity, startTicks: '1' }), false);
  assert.equal(await isSame({ ...identity, bootId: 'another' }), false);
  assert.equal(await killProcess({ ...identity, startTicks: '1' }, 'SIGKILL'), false);
  assert.equal(await isSame(identity), true, 'the kill of a reused pid must not reach the process');
  await endProcess(identity);
  assert.equal(await isSame(identity), false);
  assert.equal(await readProcess(identity.pid), null);
  assert.equal(await killProcess(identity, 'SIGKILL'), false);
});

test('init, nonsense and unused pids are no processes', async () => {
  for (const pid of [0, 1, -5, 1.5, 4_194_305]) assert.equal(await readProcess(pid), null);
});

test('a process exit is noticed, and waiting stops when its signal aborts', async () => {
  const { identity } = await start('sleep', '60');
  const controller = new AbortController();
  const given = processExited(identity, controller.signal);
  const seen = processExited(identity, new AbortController().signal);
  controller.abort();
  await given;
  assert.equal(await isSame(identity), true);
  await killProcess(identity, 'SIGKILL');
  await seen;
  assert.equal(await isSame(identity), false);
});

test('the exit of a process that is no child is noticed', async () => {
  const child = spawn('sh', ['-c', 'setsid sleep 60 >/dev/null 2>&1 & echo $!'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const orphan = await readProcess(Number(line.toString()));
  assert.ok(orphan);
  const gone = processExited(orphan, new AbortController().signal);
  await endProcess(orphan);
  await gone;
  assert.equal(await isSame(orphan), false);
});

test('a process that ignores SIGTERM is killed after its grace period', async () => {
  const { child, identity } = await start('sh', '-c', 'trap "" TERM; echo set; while :; do sleep 60; done');
  assert.ok(child.stdout);
  await once(child.stdout, 'data');
  const ended = once(child, 'exit');
  await endProcess(identity, { graceMs: 50 });
  assert.deepEqual(await ended, [null, 'SIGKILL']);
  process.kill(-identity.pid, 'SIGKILL');
});

test('a process that exits at SIGTERM is not killed', async () => {
  const { child, identity } = await start('sh', '-c', 'trap "exit 7" TERM; echo set; while :; do sleep 0.01; done');
  assert.ok(child.stdout);
  await once(child.stdout, 'data');
  const ended = once(child, 'exit');
  await endProcess(identity, { graceMs: 10_000 });
  assert.deepEqual(await ended, [7, null]);
});
