// A parent for the control groups of a test's VMs, as the supervisor makes it. Controllers are
// enabled where the kernel has them in cgroup v2.
import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cgroupMount } from '../../../os/test/cgroup-mount.ts';

interface CgroupParent {
  folder: string;
  controllers: readonly string[];
  remove: () => void;
}

export function makeCgroupParent(): CgroupParent {
  const mount = cgroupMount();
  const folder = join(mount, `berth-test-${randomUUID()}`);
  const controllers = readFileSync(join(mount, 'cgroup.controllers'), 'latin1').split(/\s+/).filter(Boolean);
  mkdirSync(folder);
  for (const group of [mount, folder])
    for (const name of controllers) writeFileSync(join(group, 'cgroup.subtree_control'), `+${name}`);

  const remove = (): void => {
    const groups = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    for (const { name } of groups) rmdirSync(join(folder, name));
    rmdirSync(folder);
  };
  return { folder, controllers, remove };
}
