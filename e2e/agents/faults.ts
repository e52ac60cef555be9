// Injects faults into an installation with one sandbox.
import { readdir, readFile } from 'node:fs/promises';
import { act, exec, sleepSandbox, waitForStatus } from '../world/client.ts';
import type { SmallDisk } from '../chaos/disturbances/small-disk.ts';
import { GUEST_DAEMON } from '../world/guest-daemon.ts';
import { processesOfInstance, processesOfVm } from '../world/leftovers.ts';
import { PARTS, type PartName, type Parts } from '../world/parts.ts';
import { until } from '../../os/test/until.ts';
import type { Conversation } from './conversation.ts';
import type { Fault } from './outcomes.ts';
import { killIfThere } from '../../os/test/signal-if-there.ts';

const PART_OF: { readonly [fault in Fault]?: PartName } = {
  'kill host daemon': 'host',
  'kill API': 'api',
  'kill Postgres': 'database',
};

/** Injects a fault; resolves when everything it ended runs again. A power cut needs `disk`. */
export async function inject(parts: Parts, fault: Fault, conversation: Conversation, disk?: SmallDisk): Promise<void> {
  const part = PART_OF[fault];
  if (part !== undefined) {
    await parts.kill(part);
    await parts.run(part);
    return;
  }
  const { caller, sandboxId } = conversation;
  switch (fault) {
    case 'kill bridge':
      return await killInGuest(conversation, 'bridge');
    case 'kill agent':
      return await killInGuest(conversation, 'agent');
    case 'kill guest daemon':
      return await killGuestDaemon(conversation);
    case 'kill VM':
      for (const pid of await processesOf(sandboxId)) killIfThere(pid);
      await waitForStatus(caller, sandboxId, ['stopped', 'failed']);
      return;
    case 'sleep and wake':
      await sleepSandbox(caller, sandboxId);
      await act(caller, sandboxId, 'wake');
      await waitForStatus(caller, sandboxId, ['running', 'ready']);
      return;
    case 'power cut':
      if (disk === undefined) throw new Error('a power cut needs a disk of its own');
      await disk.cutPower();
      for (const name of PARTS) await parts.kill(name);
      for (const pid of await processesOfInstance(disk.folder)) killIfThere(pid);
      await until('every VM has ended', async () =>
        (await processesOfInstance(disk.folder)).length === 0 ? true : null,
      );
      await disk.restorePower();
      await parts.runAll();
      return;
    default:
      throw new Error(`no way to inject ${fault}`);
  }
}

/** State of the guest daemon: of a real guest, and of the fake driver's. */
const STATE_FOLDERS = ['/var/lib/berth', '/state'];

interface Owners {
  bridge: { pid: number };
  agent: { pid: number } | null;
}

/** Kills a process of the session; does nothing if it has ended already. */
export async function killInGuest(conversation: Conversation, name: keyof Owners): Promise<void> {
  const owners = await until('the owners of the session are known', async () => {
    const text = await stateOf(conversation, 'owner.json');
    return text === '' ? null : (JSON.parse(text) as Owners);
  });
  await conversation.run(`${await sudoIn(conversation)} kill -9 ${owners[name]?.pid ?? ''} 2>/dev/null || true`);
}

/** Text of a session's file in the guest, after `change` has replaced it; empty without a file. */
export async function stateOf(conversation: Conversation, name: string, change?: string): Promise<string> {
  const paths = STATE_FOLDERS.map((folder) => `${folder}/agent-sessions/${conversation.id}/${name}`).join(' ');
  const sudo = await sudoIn(conversation);
  const write = change === undefined ? '' : `printf %s '${change}' | ${sudo} tee $(${sudo} ls ${paths}) >/dev/null; `;
  return await conversation.run(`{ ${write}${sudo} cat ${paths}; } 2>/dev/null || true`);
}

async function sudoIn(conversation: Conversation): Promise<string> {
  return (await conversation.run('sudo -n true 2>/dev/null && echo sudo -n || true')).trim();
}

/** Kills the guest daemon; resolves when another one runs commands. */
async function killGuestDaemon(conversation: Conversation): Promise<void> {
  const { caller, sandboxId } = conversation;
  const daemon = (await conversation.run(`echo ${GUEST_DAEMON}`)).trim();
  await exec(caller, sandboxId, `sudo -n kill -9 ${GUEST_DAEMON}`).catch(() => undefined);
  await until('another guest daemon runs commands', async () => {
    const found = await exec(caller, sandboxId, `echo ${GUEST_DAEMON}`).catch(() => null);
    return found !== null && found.exitCode === 0 && found.stdout.trim() !== daemon ? true : null;
  });
}

/** Processes of the sandbox's VM: of its slot, or those of a fake VM by its mark. */
export async function processesOf(sandboxId: string): Promise<number[]> {
  const found = await processesOfVm(sandboxId);
  if (found.length > 0) return found;
  for (const name of (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry))) {
    const argv = (await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '')).split('\0');
    if (argv[0]?.endsWith('bwrap') === true && argv.some((argument) => argument.includes(`:${sandboxId}:`)))
      found.push(Number(name));
  }
  return found;
}
