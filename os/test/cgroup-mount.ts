// The hierarchy of cgroup v2 for tests; its controllers may belong to version 1.
import { readFileSync } from 'node:fs';

/** Path of the mount. Throws if there is none. */
export function cgroupMount(): string {
  const mounts = readFileSync('/proc/self/mountinfo', 'latin1');
  const mount = /^\S+ \S+ \S+ \/ (\S+) .* - cgroup2 /m.exec(mounts)?.[1];
  if (mount === undefined) throw new Error('cgroup v2 is not mounted');
  return mount;
}
