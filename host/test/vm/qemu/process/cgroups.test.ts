// Control groups of VMs in this kernel's cgroup v2 hierarchy, in which controllers may be absent;
// the lab's check `cgroups` has all of them.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { limitsOf, VmCgroups } from '../../../../src/vm/qemu/process/cgroups.ts';
import { jailArgv } from '../../../../src/vm/qemu/process/jail.ts';
import { makeCgroupParent } from '../../cgroup-parent.ts';

const { folder: parent, remove } = makeCgroupParent();
after(remove);

const SMALL = { vcpu: 1, memoryMib: 1_024 };
const groups = new VmCgroups(parent);

/** A process that the command of a jail with this group starts. */
async function startIn(cgroup: string): Promise<ReturnType<typeof spawn>> {
  const [shell, flag, script, procs] = jailArgv(
    {
      cgroup,
      namespacePath: '',
      imageFolder: '',
      template: { folder: '', writable: false },
      vmFolder: '',
      memoryMib: 1_024,
      diskGib: 10,
      kvm: false,
      diesWithParent: false,
    },
    '/usr/bin/true',
    [],
  );
  const argv = [flag, script, procs, 'sh', '-c', 'echo started; exec sleep 600'].map(String);
  const child = spawn(shell, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}

test('the limits follow the size, with room for QEMU itself', () => {
  assert.deepEqual(limitsOf({ vcpu: 2, memoryMib: 4_096 }, true), {
    'cpu.weight': '200',
    'cpu.max': '250000 100000',
    'memory.max': String((4_096 + 512) * 2 ** 20),
    'memory.oom.group': '1',
    'pids.max': '256',
    'io.weight': '200',
  });
  assert.equal(limitsOf(SMALL, false)['memory.max'], String((1_024 + 512 + 512) * 2 ** 20));
});

test('a jail starts inside its group, and the end of the VM ends all that is left in it', async () => {
  await groups.prepare();
  const group = await groups.make('vm-1', SMALL, false);
  assert.equal(group, join(parent, 'vm-1'));
  const child = await startIn(group);
  assert.equal(readFileSync(join(group, 'cgroup.procs'), 'latin1').trim(), String(child.pid));

  await groups.remove('vm-1');
  assert.equal(existsSync(group), false);
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  assert.equal(child.signalCode, 'SIGKILL');
  await groups.remove('vm-1');
});

test('a new daemon keeps the groups of running VMs, and removes those of ended ones', async () => {
  const running = String(await groups.make('vm-2', SMALL, false));
  const ended = String(await groups.make('vm-3', SMALL, false));
  const child = await startIn(running);
  await new VmCgroups(parent).prepare();
  assert.deepEqual([existsSync(running), existsSync(ended)], [true, false]);
  assert.equal(child.exitCode, null);
  await groups.remove('vm-2');
});

test('a host without groups starts VMs without limits', async () => {
  const none = new VmCgroups(null);
  await none.prepare();
  assert.equal(await none.make('vm-1', SMALL, false), null);
  await none.resize('vm-1', SMALL, false);
  assert.equal(await none.outOfMemory('vm-1'), 'unknown');
  await none.remove('vm-1');
});
