// Users of the machine, from /etc/passwd and /etc/group.
import type { GuestUser } from '../machine/config.ts';
import { accessSync, constants, readFileSync, statSync } from 'node:fs';

interface User extends GuestUser {
  shell: string;
}

/** By name or uid; null: none. */
export function findUser(wanted: string | number): User | null {
  for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
    const [name = '', , uid, gid, , home = '/', shell = ''] = line.split(':');
    if (wanted !== (typeof wanted === 'string' ? name : Number(uid ?? 'NaN'))) continue;
    return { name, uid: Number(uid), gid: Number(gid), home, shell };
  }
  return null;
}

/** Groups of the user; of the usual user its own alone, without a look at the file. */
export function groupsOf({ name, gid }: GuestUser, usual: GuestUser): number[] {
  const groups = new Set([gid]);
  if (name !== usual.name) {
    for (const line of readFileSync('/etc/group', 'utf8').split('\n')) {
      const [, , id, members = ''] = line.split(':');
      if (members.split(',').includes(name)) groups.add(Number(id));
    }
  }
  return [...groups];
}

/** The user's login shell if it can be run, or another one. */
export function loginShell(uid: number): string {
  return [findUser(uid)?.shell ?? '', '/bin/bash'].find(isProgram) ?? '/bin/sh';
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
