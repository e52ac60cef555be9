// Memory of a program that runs in the place of QEMU, in the jail of a VM. Needs root.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { architectureOf } from '@berth/os/system-calls.ts';
import { FILTER_FD, jailArgv, STATUS_FD } from '../../../../src/vm/qemu/process/jail.ts';
import { qemuFilter } from '../../../../src/vm/qemu/process/seccomp.ts';

const { numberOf } = architectureOf(process.arch);
const DROP = `syscall($_, 66000) == 0 or die $! for (${numberOf('setgid')}, ${numberOf('setuid')});`;
/** Maps memory without using it: 64 MiB at a time, at most 64 GiB. */
const SCRIPT = `
  $| = 1;
  sub mapped { my ($protection, $flags) = @_; my $n = 0;
    $n += 64 while $n < 65536 && syscall(${numberOf('mmap')}, 0, 64 << 20, $protection, $flags, -1, 0) > 0;
    return $n }
  print "shared=", mapped(3, 0x21), "\\n", "growing=", mapped(3, 0x122), "\\n";
  my $name = "x"; print "memfd=", syscall(${numberOf('memfd_create')}, $name, 0) >= 0 ? "yes" : "no", "\\n";
  print "$_=", (open(my $file, ">", "$_/x") ? "yes" : "no"), "\\n" for ("/dev", "/dev/shm", "/", "/vm");
  my $later = syscall(${numberOf('mmap')}, 0, 4096 << 20, 1, 0x22, -1, 0);
  print "mprotect=", syscall(${numberOf('mprotect')}, $later, 4096 << 20, 3) == 0 ? "yes" : "no", "\\n";
  print "private=", mapped(3, 0x22), "\\n", "read-only=", mapped(1, 0x22), "\\n";`;

test('a program in the place of QEMU gets the memory of its VM and 1.5 GiB, in no other way', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-jail-'));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const name of ['image', 'template', 'vm']) mkdirSync(join(folder, name));
  const filter = join(folder, 'filter');
  writeFileSync(filter, qemuFilter(process.arch));
  const jail = {
    ...{ namespacePath: '/proc/self/ns/net', imageFolder: join(folder, 'image'), vmFolder: join(folder, 'vm') },
    template: { folder: join(folder, 'template'), writable: false },
    ...{ memoryMib: 1_024, diskGib: 10, kvm: false, diesWithParent: true },
  };
  // As QEMU's user, who may write neither of the jail's folders but the VM's.
  const argv = jailArgv(jail, '/usr/bin/perl', ['-e', `${DROP}${SCRIPT}`]);
  const descriptors = `exec ${STATUS_FD}>/dev/null ${FILTER_FD}<"$0"; exec "$@"`;
  const run = spawnSync('bash', ['-c', descriptors, filter, ...argv], { encoding: 'utf8' });
  const found = Object.fromEntries(run.stdout.split('\n').map((line) => line.split('=') as [string, string]));
  const { private: taken, 'read-only': reserved, ...refused } = found;
  assert.deepEqual(
    refused,
    {
      ...{ shared: '0', growing: '0', memfd: 'no', mprotect: 'no' },
      ...{ '/dev': 'no', '/dev/shm': 'no', '/': 'no', '/vm': 'no' },
      '': undefined,
    },
    run.stderr,
  );
  // 64 MiB at a time, and the program's own memory.
  assert.ok(Number(taken) > 2_200 && Number(taken) <= 2_560, `${taken} MiB`);
  assert.ok(Number(reserved) < 18_944, `${reserved} MiB of address space`);
});
