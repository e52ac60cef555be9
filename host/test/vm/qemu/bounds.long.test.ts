// Bounds of a VM by QEMU and the kernel: disk, network, control group. Needs root, the image and
// the template.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { DIRECT_GUESTS } from '../../../src/guest/client.ts';
import { readConfig } from '../../../src/config.ts';
import { newestImageFolder } from '../../../src/make-driver.ts';
import { outputOf, Subject, type SubjectVm } from '../../../src/vm/conformance/subject.ts';
import { createQemuDriver } from '../../../src/vm/qemu/driver.ts';
import { limitsOf } from '../../../src/vm/qemu/process/cgroups.ts';
import { makeCgroupParent } from '../cgroup-parent.ts';
import { enterPrivateHost } from '../private-host.ts';

enterPrivateHost();
const { folder: cgroup, controllers, remove } = makeCgroupParent();

const SPEC = { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'berth', sshAuthorizedKeys: [] };
const { cacheFolder, imageFolder } = readConfig([], process.env);
const image = imageFolder ?? (await newestImageFolder(cacheFolder));
const REQUESTS = 1_000;
const WRITE = 'dd if=/dev/zero of=/code/written bs=4k oflag=direct';

const installation = (instanceId: string, bounds: object): Promise<Subject> =>
  Subject.prepare(() =>
    createQemuDriver({
      ...{ cacheFolder, imageFolder: image, guests: DIRECT_GUESTS, log: () => undefined },
      network: { instanceId, dataFolder: '/nonexistent', cidr: '10.200.0.0/16', idleSlots: 1, rateMbit: 77 },
      ...bounds,
    }),
  );
let bounded: Subject;
let free: Subject;
let vm: SubjectVm;
let neighbour: SubjectVm;
before(async () => {
  bounded = await installation('bounded2', { cgroup, rates: { requestsPerSecond: 20, mibPerSecond: 1 } });
  free = await installation('freefree', {});
  vm = await bounded.create(SPEC);
  neighbour = await free.create(SPEC);
});
after(async () => {
  await bounded.close();
  await free.close();
  remove();
});

const groupOf = ({ id }: SubjectVm): string => join(cgroup, id);

function readLimits(group: string): Record<string, string> {
  const files = Object.keys(limitsOf(SPEC, false)).filter((file) => existsSync(join(group, file)));
  return Object.fromEntries(files.map((file) => [file, readFileSync(join(group, file), 'latin1').trim()]));
}

/** The expected ones, of the controllers that this kernel has in cgroup v2. */
function expectedLimits(group: string, vcpu: number, memoryMib: number): Record<string, string> {
  const kvm = bounded.driver.accelerator === 'kvm';
  const all = Object.entries(limitsOf({ vcpu, memoryMib }, kvm));
  const shown = (file: string, value: string): string => (file === 'io.weight' ? `default ${value}` : value);
  return Object.fromEntries(
    all.filter(([file]) => existsSync(join(group, file))).map(([file, value]) => [file, shown(file, value)]),
  );
}

test('QEMU runs in the group of its VM, whose limits follow its size', async () => {
  const group = groupOf(vm);
  const members = readFileSync(join(group, 'cgroup.procs'), 'latin1').trim().split('\n').map(Number);
  assert.ok(members.includes(vm.running.process.pid));
  assert.ok(members.length <= 2, 'QEMU and bwrap');
  for (const name of ['cpu', 'memory', 'pids'])
    assert.equal(controllers.includes(name), existsSync(join(group, `${name}.max`)), name);
  assert.deepEqual(readLimits(group), expectedLimits(group, 1, 1_024));

  const size = await bounded.driver.resize(bounded.existing(vm), SPEC, { ...SPEC, vcpu: 2, memoryMib: 2_048 });
  assert.deepEqual(readLimits(group), expectedLimits(group, size.vcpu, size.memoryMib));
});

test('both devices of a slot have the bound of its traffic', async () => {
  const { slot } = bounded.existing(vm).state;
  const shown = execFileSync('ip', ['netns', 'exec', `berth${String(slot)}`, 'tc', 'qdisc', 'show'], {
    encoding: 'utf8',
  });
  assert.equal(shown.match(/^qdisc tbf .* rate 77Mbit /gm)?.length, 2, shown);
});

/** Requests of the bounded VM's writer while its neighbour wrote {@link REQUESTS}. */
async function requestsMeanwhile(): Promise<number> {
  const written = async (): Promise<number> => Number(await outputOf(vm.client, 'stat -c %s /code/written')) / 4_096;
  const before = await written();
  await outputOf(neighbour.client, `${WRITE} count=${REQUESTS}`);
  return (await written()) - before;
}

test('a VM beyond the bound of its disk waits, and its neighbour does not', async () => {
  await outputOf(vm.client, `${WRITE} count=100000 >/dev/null 2>&1 & until [ -e /code/written ]; do sleep 0.01; done`);
  const requests = await requestsMeanwhile();
  assert.ok(requests < REQUESTS / 4, `${requests} beside ${REQUESTS}`);
});

test('the bounds hold after sleep and wake, and the group ends with the VM', async () => {
  const group = groupOf(vm);
  await bounded.sleep(vm, { ...SPEC, vcpu: 2, memoryMib: 2_048 });
  assert.equal(existsSync(group), false);
  const size = await bounded.wake(vm);
  assert.deepEqual(readLimits(group), expectedLimits(group, size.vcpu, size.memoryMib));
  const requests = await requestsMeanwhile();
  assert.ok(requests < REQUESTS / 4, `${requests} beside ${REQUESTS}`);

  await bounded.destroy(vm);
  assert.equal(existsSync(group), false);
});
