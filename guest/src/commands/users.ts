// Users of the machine, from /etc/passwd.
import { accessSync, constants, readFileSync, statSync } from 'node:fs';

interface User {
  name: string;
  uid: number;
  gid: number;
  home: string;
  shell: string;
}

/** By name or uid; null: none. */
function findUser(wanted: string | number): User | null {
  for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
    const [name = '', , uid, gid, , home = '/', shell = ''] = line.split(':');
    if (wanted !== (typeof wanted === 'string' ? name : Number(uid ?? 'NaN'))) continue;
    return { name, uid: Number(uid), gid: Number(gid), home, shell };
  }
  return null;
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
