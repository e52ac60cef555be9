// Limits of VMs that need the controllers of cgroup v2: a program in the group of a VM, as of a
// QEMU that was taken over. Runs in the lab.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { readConfig } from '../../../src/config.ts';
import { DIRECT_GUESTS } from '../../../src/guest/client.ts';
import { newestImageFolder } from '../../../src/make-driver.ts';
import { outputOf, Subject, type SubjectVm } from '../../../src/vm/conformance/subject.ts';
import { createQemuDriver } from '../../../src/vm/qemu/driver.ts';
import { makeCgroupParent } from '../cgroup-parent.ts';
import { enterPrivateHost } from '../private-host.ts';

enterPrivateHost();

const SPEC = { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'berth', sshAuthorizedKeys: [] };
const { folder: cgroup, remove } = makeCgroupParent();
const { cacheFolder, imageFolder } = readConfig([], process.env);
const image = imageFolder ?? (await newestImageFolder(cacheFolder));

let subject: Subject;
let neighbour: SubjectVm;
before(async () => {
  subject = await Subject.prepare(() =>
    createQemuDriver({
      ...{ cacheFolder, imageFolder: image, guests: DIRECT_GUESTS, log: () => undefined, cgroup },
      network: { instanceId: 'limitted', dataFolder: '/nonexistent', cidr: '10.200.0.0/16', idleSlots: 1 },
    }),
  );
  neighbour = await subject.create(SPEC);
});
after(async () => {
  await subject.close();
  remove();
});

const fileOf = ({ id }: SubjectVm, name: string): string => readFileSync(join(cgroup, id, name), 'latin1');
const eventOf = (vm: SubjectVm, file: string, name: string): number =>
  Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(fileOf(vm, file))?.[1]);

/** Runs a script in the group of a VM, as root; resolves with its output at its end. */
async function intrude({ id }: SubjectVm, script: string): Promise<string> {
  const entered = 'echo 0 >"$0" && exec perl -e "$1"';
  const child = spawn('sh', ['-c', entered, join(cgroup, id, 'cgroup.procs'), script], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  await once(child, 'close');
  return output;
}

test('a program in the group of a VM makes no more processes than its tasks allow', async () => {
  const child = 'close STDOUT; sleep 600; exit';
  const forks = `my $pid = fork; last unless defined $pid; unless ($pid) { ${child} } $n++`;
  const vm = await subject.create(SPEC);
  const made = Number(await intrude(vm, `my $n = 0; while ($n < 2000) { ${forks} } print $n`));
  assert.ok(made > 0 && made < 256, `${made} processes`);
  assert.equal(await outputOf(neighbour.client, 'echo alive'), 'alive');
  await subject.destroy(vm);
});

test('busy programs in the group of a VM are held to its share of the CPU', async () => {
  const vm = await subject.create(SPEC);
  const script = 'for (1 .. 3) { next if fork; my $n = 0; $n++ while $n < 3e6; exit } wait for 1 .. 3';
  await intrude(vm, script);
  assert.ok(eventOf(vm, 'cpu.stat', 'nr_throttled') > 0, fileOf(vm, 'cpu.stat'));
  await subject.destroy(vm);
});

test('a VM beyond its memory is killed alone, and its end says so', async () => {
  const vm = await subject.create(SPEC);
  const ended = subject.driver.exited(vm.running.process, AbortSignal.timeout(600_000));
  await intrude(vm, 'my @taken; push @taken, "x" x 2**24 while 1');
  const end = await ended;
  assert.equal(end.code, 'out_of_memory');
  assert.match(end.reason, /more memory than the size of its VM allows/);
  assert.equal(await outputOf(neighbour.client, 'echo alive'), 'alive');
  assert.equal(eventOf(neighbour, 'memory.events', 'oom_kill'), 0);
  await subject.destroy(vm);
});
