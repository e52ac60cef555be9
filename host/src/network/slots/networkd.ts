// Keeps systemd-networkd from the host's end of each slot: a .network file that matches all
// Ethernet devices would make it replace their addresses.
import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readIfPresent, writeDurably } from '@berth/os/durable-file.ts';
import { nullIf } from '@berth/os/errors.ts';
import { runTool } from './locked-program.ts';
import { HOST_VETH_PREFIX } from './slot.ts';

/** Sorts before the files of others: the first match decides. */
const FILE = '00-berth.network';
const CONTENT = `# Written by Berth: it configures these devices itself.
[Match]
Name=${HOST_VETH_PREFIX}*

[Link]
Unmanaged=yes
`;

interface Networkd {
  /** Exists while systemd-networkd runs. */
  state: string;
  /** Configuration until the next boot. */
  folder: string;
  reload: () => Promise<void>;
}

const NETWORKD: Networkd = {
  state: '/run/systemd/netif/state',
  folder: '/run/systemd/network',
  reload: async () => void (await runTool('Reloading systemd-networkd', ['networkctl', 'reload'])),
};

/** Returns the change in a sentence, null if there was nothing to change. */
export async function keepFromNetworkd({ state, folder, reload } = NETWORKD): Promise<string | null> {
  if ((await stat(state).catch(nullIf('ENOENT'))) === null) return null;
  const path = join(folder, FILE);
  if ((await readIfPresent(path)) === CONTENT) return null;
  await mkdir(folder, { recursive: true });
  // After a crash or a failure of the reload, the next start repeats it.
  await writeDurably(path, `# Not loaded yet.\n${CONTENT}`, 0o644);
  await reload();
  await writeDurably(path, CONTENT, 0o644);
  return `Told systemd-networkd by ${path} to leave the devices of guests alone.`;
}
