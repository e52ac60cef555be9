// Facts of a VM under KVM that the conformance suite does not ask for. Runs in the lab, and on any
// host with KVM, as root.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { DIRECT_GUESTS } from '../../../src/guest/client.ts';
import { readConfig } from '../../../src/config.ts';
import { newestImageFolder } from '../../../src/make-driver.ts';
import { outputOf, Subject, type SubjectVm } from '../../../src/vm/conformance/subject.ts';
import { createQemuDriver } from '../../../src/vm/qemu/driver.ts';
import { TEMPLATE_FILES } from '../../../src/vm/qemu/machine/argv.ts';
import { enterPrivateHost } from '../private-host.ts';

enterPrivateHost();

const SPEC = { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'berth', sshAuthorizedKeys: [] };
const OWN_MEMORY_MIB = 40;
const { cacheFolder, imageFolder } = readConfig([], process.env);
const image = imageFolder ?? (await newestImageFolder(cacheFolder));

let subject: Subject;
let vm: SubjectVm;
before(async () => {
  subject = await Subject.prepare(() =>
    createQemuDriver({
      ...{ cacheFolder, imageFolder: image, guests: DIRECT_GUESTS, log: () => undefined },
      network: { instanceId: 'kvmfacts', dataFolder: '/nonexistent', cidr: '10.200.0.0/16', idleSlots: 1 },
    }),
  );
  vm = await subject.create(SPEC);
});
after(() => subject.close());

const clockSource = (): Promise<string> =>
  outputOf(vm.client, 'cat /sys/devices/system/clocksource/clocksource0/current_clocksource');

test('VMs run under KVM, with the clock of KVM before and after sleep', async () => {
  assert.equal(subject.driver.accelerator, 'kvm');
  assert.match(await clockSource(), /^(kvm-clock|tsc)$/);
  await subject.sleep(vm, SPEC);
  await subject.wake(vm);
  assert.match(await clockSource(), /^(kvm-clock|tsc)$/);
  const [earliest, guest, latest] = [Date.now(), Number(await outputOf(vm.client, 'date +%s%3N')), Date.now()];
  assert.ok(guest > earliest - 500 && guest < latest + 500, `${guest} of ${earliest} to ${latest}`);
});

test('/dev/kvm is the only device of the host that the jail has beside the TAP', () => {
  const devices = readdirSync(`/proc/${vm.running.process.pid}/root/dev`).sort();
  const always = ['core', 'fd', 'full', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'tty'];
  assert.deepEqual(devices, [...always, 'kvm', 'net', 'urandom', 'zero'].sort());
});

test('an idle QEMU takes little memory beside that of its guest', () => {
  const smaps = readFileSync(`/proc/${vm.running.process.pid}/smaps`, 'latin1').split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m);
  const own = smaps.filter((mapping) => !mapping.split('\n')[0]?.endsWith(`/${TEMPLATE_FILES.memory}`));
  const kib = own.reduce((sum, mapping) => sum + Number(/^Anonymous:\s+(\d+) kB$/m.exec(mapping)?.[1] ?? 0), 0);
  console.log(`QEMU's own memory: ${(kib / 1_024).toFixed(1)} MiB`);
  assert.ok(kib / 1_024 <= OWN_MEMORY_MIB, `${kib} KiB`);
});
