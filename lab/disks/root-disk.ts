// Root disk of the lab: Debian 13 from packages, with systemd. Kept until the packages or files
// named here change.
import { createHash } from 'node:crypto';
import { cp, mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { machineArchive } from '@berth/image/build/apt.ts';
import { runCommand } from '@berth/os/command.ts';
import type { LabFolder } from './folder.ts';
import { makeFileSystem } from './file-system.ts';
import { FILES, LINKS } from './root-files.ts';

const SUITE = 'trixie';
const SIZE_GIB = 16;
const PACKAGES = [
  ...['linux-image-amd64', 'systemd-sysv', 'dbus', 'udev', 'kmod', 'procps', 'sudo', 'zstd'],
  ...['qemu-system-x86', 'qemu-utils', 'bubblewrap', 'nftables', 'iproute2', 'util-linux', 'mount', 'passwd'],
  ...['libjemalloc2', 'curl', 'ca-certificates', 'debian-archive-keyring', 'nodejs', 'npm'],
  // For the tests that run inside.
  ...['cpio', 'openssh-client', 'git', 'tmux', 'python3'],
];

export interface RootDisk {
  /** Raw ext4; read-only for a run. */
  disk: string;
  kernel: string;
  initrd: string;
}

export async function makeRootDisk({ kept, run }: LabFolder, signal: AbortSignal): Promise<RootDisk> {
  const recipe = JSON.stringify([SUITE, SIZE_GIB, PACKAGES, FILES, LINKS]);
  const name = `root-${createHash('sha256').update(recipe).digest('hex').slice(0, 16)}`;
  const folder = join(kept, name);
  if (!(await readdir(kept)).includes(name)) {
    console.log('• root disk: installing Debian packages (some minutes)');
    const made = join(run, name);
    await buildRootDisk(made, join(run, 'root'), signal);
    for (const former of await readdir(kept))
      if (former.startsWith('root-')) await rm(join(kept, former), { recursive: true });
    await rename(made, folder);
  }
  return { disk: join(folder, 'root.ext4'), kernel: join(folder, 'vmlinuz'), initrd: join(folder, 'initrd.img') };
}

async function buildRootDisk(made: string, root: string, signal: AbortSignal): Promise<void> {
  const { debian, keyring } = await machineArchive(signal);
  await runCommand(
    'mmdebstrap',
    [
      ...['--variant=minbase', `--include=${PACKAGES.join(',')}`, '--aptopt=APT::Install-Recommends "false"'],
      ...[SUITE, root, `deb [signed-by=${keyring}] ${debian} ${SUITE} main`],
    ],
    { signal },
  );
  for (const [path, { text, mode }] of Object.entries(FILES)) {
    await mkdir(join(root, path, '..'), { recursive: true });
    await writeFile(join(root, path), text, { mode });
  }
  for (const [path, target] of Object.entries(LINKS)) {
    await mkdir(join(root, path, '..'), { recursive: true });
    await rm(join(root, path), { force: true });
    await symlink(target, join(root, path));
  }
  await mkdir(made);
  for (const file of ['vmlinuz', 'initrd.img']) await cp(join(root, file), join(made, file), { dereference: true });
  await makeFileSystem(join(made, 'root.ext4'), { folder: root, gib: SIZE_GIB, label: 'root' }, signal);
  await rm(root, { recursive: true });
}
