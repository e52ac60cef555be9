// Berth's overlay of the installed root: services, settings, kernel modules, Node, npm, the guest
// daemon and the coding agents. Returns tar entries; writes nothing.
import { GUEST_NETWORK } from '@berth/protocol/guest.ts';
import { readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { agentListFile, GUEST_AGENTS_FOLDER } from './agents.ts';
import { listFolder } from './digest.ts';
import type { Recipe } from './recipe.ts';
import type { TarEntry } from '@berth/os/tar.ts';
import type { Tools } from './tools-stage.ts';

/** Modes that a checkout cannot carry. */
const MODES = new Map([['etc/sudoers.d/berth', 0o440]]);

/** Omit npm's documentation, like that of the packages. */
const NPM_LEFT_OUT = /^(docs|man)(\/|$)/;

const BERTH_USER = { uid: 1000, gid: 1000 };

/**
 * All entries of the overlay, folders before their content.
 * @param agentFolders files of each agent of the recipe, by its id
 * @param existing folders already in the root, which keep their modes
 */
export async function overlayEntries(
  recipe: Recipe,
  tools: Tools,
  agentFolders: ReadonlyMap<string, string>,
  existing: ReadonlySet<string>,
): Promise<TarEntry[]> {
  const agents: TarEntry[] = [];
  for (const { id, name } of recipe.agents)
    agents.push(...(await treeEntries(agentFolders.get(id) ?? '', `${GUEST_AGENTS_FOLDER}/${name}`)));
  const files = [
    ...(await treeEntries(join(recipe.folder, 'root'), '')),
    ...(await treeEntries(tools.modulesFolder, `usr/lib/modules/${tools.kernelVersion}`)),
    ...(await treeEntries(recipe.npm.path, 'usr/local/lib/node_modules/npm', NPM_LEFT_OUT)),
    ...agents,
    ...writtenFiles({ [`${GUEST_AGENTS_FOLDER}/agents.json`]: agentListFile(recipe.agents) }),
    { path: 'opt/berth/guestd.mjs', type: 'file', mode: 0o644, content: Buffer.from(recipe.guestBundle) },
    { path: 'usr/local/bin/node', type: 'file', mode: 0o755, content: { file: recipe.node.path } },
    { path: 'usr/local/bin/npm', type: 'link', target: '../lib/node_modules/npm/bin/npm-cli.js' },
    { path: 'usr/local/bin/npx', type: 'link', target: '../lib/node_modules/npm/bin/npx-cli.js' },
    { path: 'etc/runit/runsvdir/default/guestd', type: 'link', target: '/etc/sv/guestd' },
    { path: 'etc/runit/runsvdir/default/ssh', type: 'link', target: '/etc/sv/ssh' },
    ...['guestd', 'guestd/log', 'ssh'].map((service): TarEntry => {
      // Keep runsv's supervise files in memory.
      const target = `/run/runit/supervise/${service.replace('/', '-')}`;
      return { path: `etc/sv/${service}/supervise`, type: 'link', target };
    }),
    { path: 'code', type: 'folder', mode: 0o755, owner: BERTH_USER },
  ] satisfies TarEntry[];
  return withFolders(files, existing);
}

/** Files derived from the network settings shared by host and guest, and others. */
function writtenFiles(others: Readonly<Record<string, string>>): TarEntry[] {
  const { address, prefixLength, gateway } = GUEST_NETWORK;
  const texts: Record<string, string> = {
    ...others,
    'etc/berth/network': `ADDRESS=${address}/${prefixLength}\nGATEWAY=${gateway}\n`,
    // Listen only on the address that the VM's host can reach.
    'etc/ssh/sshd_config.d/address.conf': `ListenAddress ${address}:22\n`,
    'etc/resolv.conf': `nameserver ${gateway}\n`,
    'etc/hostname': 'berth\n',
    'etc/hosts': '127.0.0.1 localhost berth\n::1 localhost ip6-localhost ip6-loopback\n',
    'etc/fstab': '# The initramfs mounts the root, /etc/runit/1 the rest.\n',
  };
  return Object.entries(texts).map(([path, text]) => ({ path, type: 'file', mode: 0o644, content: Buffer.from(text) }));
}

async function treeEntries(folder: string, at: string, leftOut?: RegExp): Promise<TarEntry[]> {
  const entries: TarEntry[] = [];
  for (const { path, type, executable } of await listFolder(folder)) {
    if (leftOut?.test(path)) continue;
    const inside = at === '' ? path : `${at}/${path}`;
    if (type === 'folder') {
      entries.push({ path: inside, type, mode: 0o755 });
    } else if (type === 'link') {
      entries.push({ path: inside, type, target: await readlink(join(folder, path)) });
    } else {
      const mode = MODES.get(inside) ?? (executable ? 0o755 : 0o644);
      entries.push({ path: inside, type, mode, content: { file: join(folder, path) } });
    }
  }
  return entries;
}

/** Adds parent folders that the root lacks; omits existing ones. */
function withFolders(entries: readonly TarEntry[], existing: ReadonlySet<string>): TarEntry[] {
  const known = new Set(existing);
  const result: TarEntry[] = [];
  for (const entry of entries) {
    const parts = entry.path.split('/');
    for (let depth = 1; depth < parts.length; depth++) {
      const folder = parts.slice(0, depth).join('/');
      if (!known.has(folder)) result.push({ path: folder, type: 'folder', mode: 0o755 });
      known.add(folder);
    }
    if (entry.type === 'folder' && known.has(entry.path)) continue;
    if (entry.type === 'folder') known.add(entry.path);
    result.push(entry);
  }
  return result;
}
