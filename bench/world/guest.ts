// Views of a sandbox's VM that need root on the host: its guest daemon, dialled directly past API
// and host daemon, and its memory.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { GUEST_PORT } from '@berth/protocol/guest.ts';
import { DEFAULT_REGISTRY_FOLDER, readRegistry } from '@berth/host/network/slots/registry.ts';
import { readIfPresent } from '@berth/os/durable-file.ts';
import { DataKeys } from '../../host/src/vm/directory/data-keys.ts';
import { SecretFolders } from '../../host/src/vm/directory/secret-folders.ts';
import { TEMPLATE_FILES } from '../../host/src/vm/qemu/machine/argv.ts';
import { FIRST_SLOT_UID, parseGuestCidr, slotOf } from '@berth/host/network/slots/slot.ts';
import { expectSuccess, JsonCaller } from './client.ts';
import type { BenchWorld } from './installation.ts';

const run = promisify(execFile);

interface DirectGuest {
  exec(command: string): Promise<void>;
  close(): void;
}

/** The guest daemon of a running sandbox, with the secret from the VM's folder. */
export async function guestOf({ dataFolder, guestCidr }: BenchWorld, sandboxId: string): Promise<DirectGuest> {
  const { number, instanceId } = await slotEntryOf(sandboxId);
  const { address } = slotOf(parseGuestCidr(guestCidr), number);
  const folders = new SecretFolders(join(dataFolder, 'host', 'vms'), await DataKeys.open(instanceId));
  const token = await folders.readSecret(sandboxId);
  if (token === null) throw new Error(`this host holds no data key of ${sandboxId}`);
  const caller = new JsonCaller({ address, port: GUEST_PORT, token });
  return {
    exec: async (command) => expectSuccess(await caller.call('POST', '/exec', { command, timeoutSeconds: 120 })),
    close: () => caller.close(),
  };
}

/** The guest's address on its slot's network, at which the host reaches its listeners. */
export async function addressOf({ guestCidr }: BenchWorld, sandboxId: string): Promise<string> {
  return slotOf(parseGuestCidr(guestCidr), (await slotEntryOf(sandboxId)).number).address;
}

/**
 * Memory of the sandbox's QEMU that no other process shares, in MiB: Pss_Anon of the whole process,
 * and its part in the guest's RAM mapping (pages changed since the template).
 */
export async function unsharedMemoryOf(sandboxId: string): Promise<{ vmMib: number; guestMib: number }> {
  const uid = FIRST_SLOT_UID + (await slotEntryOf(sandboxId)).number;
  const { stdout } = await run('pgrep', ['-u', String(uid), '-f', 'qemu-system']);
  const pid = stdout.trim().split('\n')[0] ?? '';
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  return {
    vmMib: kibOf(rollup, 'Pss_Anon') / 1_024,
    guestMib: guestKib(await readFile(`/proc/${pid}/smaps`, 'utf8')) / 1_024,
  };
}

/** Anonymous pages in the mappings of the template's RAM file. */
function guestKib(smaps: string): number {
  const mappings = smaps.split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m);
  const ram = mappings.filter((mapping) => mapping.split('\n')[0]?.endsWith(`/${TEMPLATE_FILES.memory}`));
  if (ram.length === 0) throw new Error('QEMU has no mapping of a template RAM file');
  return ram.reduce((sum, mapping) => sum + kibOf(mapping, 'Anonymous'), 0);
}

function kibOf(text: string, name: string): number {
  const found = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1];
  if (found === undefined) throw new Error(`the kernel's smaps has no ${name}`);
  return Number(found);
}

/** A VM from the pool holds its slot under its pool id; the VM's record names that id. */
async function slotEntryOf(sandboxId: string): Promise<{ number: number; instanceId: string }> {
  for (const [number, { vmId, dataFolder, instanceId }] of await readRegistry(DEFAULT_REGISTRY_FOLDER)) {
    if (vmId !== null && (vmId === sandboxId || vmId === (await machineIdOf(dataFolder, sandboxId))))
      return { number, instanceId };
  }

  throw new Error(`no network slot is claimed by ${sandboxId}`);
}

async function machineIdOf(dataFolder: string, sandboxId: string): Promise<string | null> {
  const record = await readIfPresent(join(dataFolder, 'host', 'vms', sandboxId, 'record.json'));
  // The slot belongs to another installation, or that one is gone.
  return record === null ? null : ((JSON.parse(record) as { machineId?: string | null }).machineId ?? null);
}
