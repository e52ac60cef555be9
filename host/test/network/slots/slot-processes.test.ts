// Needs root: creates a network namespace.
import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { FIRST_SLOT_UID } from '../../../src/network/slots/slot.ts';
import { endSlotProcesses } from '../../../src/network/slots/slot-processes.ts';
import { enterPrivateHost } from '../../vm/private-host.ts';

enterPrivateHost();

const run = promisify(execFile);
const SLOT = { namespacePath: '/run/netns/berth0', uid: FIRST_SLOT_UID };

function asUser(uid: number): [string, ...string[]] {
  return ['setpriv', '--reuid', String(uid), '--regid', String(uid), '--clear-groups'];
}

/** Resolves when the program runs, which it reports with a line. */
async function start(command: readonly [string, ...string[]]): Promise<ChildProcess> {
  const [program, ...args] = command;
  const child = spawn(program, [...args, 'sh', '-c', 'echo here; exec sleep 600'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(child.stdout, 'data');
  return child;
}

test('only processes in the slot’s namespace or with its uid are ended', async (context) => {
  await run('ip', ['netns', 'add', 'berth0']);
  context.after(() => run('ip', ['netns', 'delete', 'berth0']));
  const inside = await start(['nsenter', '--net=/run/netns/berth0']);
  const user = await start(asUser(FIRST_SLOT_UID));
  const neighbour = await start(asUser(FIRST_SLOT_UID + 1));
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
  assert.equal(await endSlotProcesses({ namespacePath: '/run/netns/berth99', uid: FIRST_SLOT_UID + 99 }), 0);
});
