// Disks as sparse files.
import { runCommand } from '@berth/os/command.ts';

interface FileSystem {
  folder: string;
  gib: number;
  label: string;
}

/** Writes an ext4 file system with the folder's files to the path. */
export async function makeFileSystem(path: string, of: FileSystem, signal: AbortSignal): Promise<void> {
  await runCommand('mke2fs', ['-q', '-t', 'ext4', '-L', of.label, '-d', of.folder, path, `${of.gib}G`], { signal });
}

/** Writes an overlay: changes of a run leave the disk below as it is. */
export async function makeOverlay(path: string, below: string, signal: AbortSignal): Promise<void> {
  await runCommand('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', below, path], { signal });
}
