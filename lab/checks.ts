// Checks of the lab, by name.
import { Boots, type Bench } from './boots.ts';
import type { Step } from './order.ts';
import { cutPower } from './power.ts';
import { rebootInstalled } from './reboot.ts';

interface Check {
  purpose: string;
  /** Resolves with the exit code. */
  run(bench: Bench): Promise<number>;
}

/** Each file by itself: its results appear as they come. */
const testsOf = (...files: readonly string[]): string => files.map((file) => `node ${file}`).join(' && ');
const BUILD = [
  'image=$(node image/src/main.ts build | head -n 1)',
  'node host/src/vm/qemu/template/build/main.ts build --cache-dir /var/cache/berth --image-folder "$image"',
].join(' && ');
const TEMPLATE: Step = { name: 'probe and template', command: BUILD };

const KVM: readonly Step[] = [
  { name: 'a real /dev/kvm', command: 'test -c /dev/kvm && grep -c svm /proc/cpuinfo' },
  TEMPLATE,
  { name: 'conformance of the driver', command: testsOf('host/test/vm/qemu/conformance.long.test.ts') },
  { name: 'clock, devices and memory', command: testsOf('host/test/vm/qemu/kvm.lab.ts') },
  { name: 'demo', command: './berth demo' },
];

const CGROUPS: readonly Step[] = [
  { name: 'the controllers of cgroup v2', command: 'grep cpu /sys/fs/cgroup/cgroup.controllers' },
  TEMPLATE,
  { name: 'groups of an instance', command: testsOf('machine/test/supervisor/cgroups.lab.ts') },
  {
    name: 'limits of VMs',
    command: testsOf('host/test/vm/qemu/bounds.long.test.ts', 'host/test/vm/qemu/kernel-limits.lab.ts'),
  },
];

export const CHECKS: Readonly<Record<string, Check>> = {
  kvm: { purpose: 'the VM driver and the demo under KVM', run: (bench) => runSteps(bench, KVM) },
  cgroups: { purpose: 'the limits that the kernel sets for VMs', run: (bench) => runSteps(bench, CGROUPS) },
  all: {
    purpose: 'kvm and cgroups in one machine',
    run: (bench) => runSteps(bench, [...KVM, ...CGROUPS.filter((step) => step !== TEMPLATE)]),
  },
  systemd: {
    purpose: 'berth install --systemd, a restart of the service, a reboot, and berth uninstall; -- systemd [DRIVER]',
    run: rebootInstalled,
  },
  power: {
    purpose: 'power cuts under load, nothing acknowledged is lost; -- power [CUTS, 20] [DRIVER]',
    run: cutPower,
  },
  run: {
    purpose: "a shell command in the checkout inside, such as -- run 'uname -a'",
    run: (bench) => runSteps(bench, [{ name: bench.args.join(' '), command: bench.args.join(' ') }]),
  },
};

/** Runs the steps in a new machine. */
async function runSteps(bench: Bench, steps: readonly Step[]): Promise<number> {
  const boots = await Boots.of(bench);
  return await boots.run({ steps }, async (machine) => machine.exitCode);
}
