// Needs root: a network namespace is made.
import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { endSlotProcesses } from '../../../src/vm/qemu/slot-processes.ts';
import { enterPrivateMachine } from './private-machine.ts';

enterPrivateMachine();

const run = promisify(execFile);
const SLOT = { namespacePath: '/run/netns/berth0', uid: 200_000 };

/** Resolves when the program runs: it writes a line first. */
async function start(command: readonly [string, ...string[]]): Promise<ChildProcess> {
  const [program, ...args] = command;
  const child = spawn(program, [...args, 'sh', '-c', 'echo here; exec sleep 600'], { stdio: ['ignore', 'pipe', 'ignore'] });
  await once(child.stdout, 'data');
  return child;
}

test('who is in the slot’s namespace or has its uid is ended, and nobody else', async (context) => {
  await run('ip', ['netns', 'add', 'berth0']);
  context.after(() => run('ip', ['netns', 'delete', 'berth0']));
  const inside = await start(['nsenter', '--net=/run/netns/berth0']);
  const user = await start(['setpriv', '--reuid', '200000', '--regid', '200000', '--clear-groups']);
  const neighbour = await start(['setpriv', '--reuid', '200001', '--regid', '200001', '--clear-groups']);
  context.after(() => neighbour.kill('SIGKILL'));
  const ended = Promise.all([once(inside, 'exit'), once(user, 'exit')]);
  assert.equal(await endSlotProcesses(SLOT), 2);
  assert.deepEqual(
    (await ended).map(([, signal]) => signal as string),
    ['SIGKILL', 'SIGKILL'],
  );
  assert.equal(neighbour.exitCode ?? neighbour.signalCode, null);
});

test('a slot that is gone has no processes to end', async () => {
  assert.equal(await endSlotProcesses({ namespacePath: '/run/netns/berth99', uid: 200_099 }), 0);
});
