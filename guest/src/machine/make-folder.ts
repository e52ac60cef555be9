// Makes folders without the `recursive` of Node's mkdirSync, which never returns, and so blocks the
// process for ever, if the parent is the mount point of a removed folder.
import { mkdirSync } from 'node:fs';
import { nullOn } from '@berth/os/errors.ts';

/** Makes the folders, each in an existing one or the one before. Keeps existing ones. */
export function makeFolders(mode: number, ...paths: readonly string[]): void {
  for (const path of paths) nullOn(['EEXIST'], () => mkdirSync(path, { mode }));
}
