import { readdirSync, statSync } from 'node:fs';

/** Ids of processes with the file open, by inode: paths are relative to mount namespaces. */
export function processesWith(file: string): string[] {
  const { dev, ino } = statSync(file);
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readdirSync(`/proc/${pid}/fd`).some((fd) => {
          const open = statSync(`/proc/${pid}/fd/${fd}`, { throwIfNoEntry: false });
          return open?.ino === ino && open.dev === dev;
        });
      } catch {
        // The process has exited.
        return false;
      }
    });
}
