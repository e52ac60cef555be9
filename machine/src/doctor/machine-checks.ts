// The host's resources: system, rights, processor, memory, disk, packages. Read-only.
import { existsSync } from 'node:fs';
import { readFile, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Config } from '../config/config.ts';
import { QEMU_MIN_VERSION, isTested, readDistribution, readPackages } from '../setup/packages.ts';
import { cgroupFault } from '../supervisor/cgroups.ts';
import { commandHint } from '../output/command-hint.ts';
import { fault, ok, warn } from './check.ts';
import type { Check, Finding } from './check.ts';

const MEBIBYTE = 1_048_576;
const GIBIBYTE = 1_073_741_824;
/** A small sandbox with its QEMU, beyond the reserve. */
const SANDBOX_MEMORY_MIB = 1_152;
/** Packages, stages, image and template during an image build. */
const CACHE_FREE_GIB = 8;
const DATA_FREE_GIB = 5;

export function machineChecks(config: Config): Check[] {
  return [
    { subject: 'system', run: checkSystem },
    { subject: 'rights', run: async () => [checkRights()] },
    { subject: 'processor', run: checkProcessor },
    { subject: 'memory', run: () => checkMemory(config.memoryReserveMib) },
    { subject: 'disk', run: () => checkDisk(config) },
    { subject: 'packages', run: () => checkPackages(config) },
    { subject: 'cgroup', run: checkCgroup },
    { subject: 'user namespaces', run: checkUserNamespaces },
  ];
}

async function checkSystem(): Promise<Finding[]> {
  const distribution = await readDistribution();
  const kernel = (await readFile('/proc/sys/kernel/osrelease', 'utf8')).trim();
  const detail = `${distribution.prettyName}, kernel ${kernel}, ${process.arch}, Node.js ${process.versions.node}`;
  return [
    isTested(distribution)
      ? ok('system', detail)
      : warn('system', `${detail}: untested`, 'Berth is tested on Debian 12 and 13'),
  ];
}

function checkRights(): Finding {
  return process.getuid?.() === 0
    ? ok('rights', 'root')
    : fault('rights', 'not root', 'run it as root, or install sudo');
}

async function checkProcessor(): Promise<Finding[]> {
  const text = await readFile('/proc/cpuinfo', 'utf8');
  const count = text.match(/^processor\s*:/gm)?.length ?? 0;
  const flag = /^flags\s*:.*\b(vmx|svm)\b/m.exec(text)?.[1];
  const device = existsSync('/dev/kvm');
  const detail = `${count} CPUs, virtualization flag ${flag ?? 'missing'}, /dev/kvm ${device ? 'there' : 'missing'}`;
  if (flag !== undefined && device) return [ok('processor', detail)];

  const remedy =
    flag === undefined
      ? 'enable virtualization in the firmware, or nested virtualization on the hypervisor; ' +
        'without it sandboxes are emulated (slower, less isolated)'
      : 'modprobe kvm_intel or kvm_amd; without it sandboxes are emulated (slower, less isolated)';
  return [warn('processor', detail, remedy)];
}

async function checkMemory(reserveMib: number): Promise<Finding[]> {
  const text = await readFile('/proc/meminfo', 'utf8');
  const mib = (key: string): number =>
    Math.floor(Number(new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0) / 1024);
  const total = mib('MemTotal');
  const forSandboxes = total - reserveMib;
  const detail = `${total} MiB, ${mib('MemAvailable')} MiB available, ${reserveMib} MiB reserved`;
  return [
    forSandboxes >= SANDBOX_MEMORY_MIB
      ? ok('memory', detail)
      : fault(
          'memory',
          `${detail}: no sandbox fits`,
          `a sandbox needs ${SANDBOX_MEMORY_MIB} MiB; lower --memory-reserve-mib or add memory`,
        ),
  ];
}

async function checkDisk(config: Config): Promise<Finding[]> {
  const folders = [
    ['data', config.dataFolder, DATA_FREE_GIB],
    ['cache', config.cacheFolder, CACHE_FREE_GIB],
  ] as const;
  return Promise.all(
    folders.map(async ([name, folder, wantedGib]) => {
      const existing = nearestExisting(folder);
      const { bavail, bsize } = await statfs(existing);
      const freeGib = (bavail * bsize) / GIBIBYTE;
      const detail = `${folder}: ${freeGib.toFixed(1)} GiB free`;
      const full = warn(
        'disk',
        `${detail}; at least ${wantedGib} GiB recommended`,
        `free some space, or choose another folder with --${name}-dir`,
      );
      const nothingLeft = bavail * bsize < 512 * MEBIBYTE;
      return freeGib >= wantedGib ? ok('disk', detail) : nothingLeft ? { ...full, grade: 'fault' as const } : full;
    }),
  );
}

function nearestExisting(folder: string): string {
  return existsSync(folder) ? folder : nearestExisting(dirname(folder));
}

async function checkPackages(config: Config): Promise<Finding[]> {
  const install = `${commandHint('up', config)} installs it`;
  const packages = await readPackages();
  const lacking = packages.filter((state) => state.version === null || state.tooOld);
  const there = packages.filter((state) => !lacking.includes(state)).map((state) => `${state.name} ${state.version}`);
  const findings = lacking.map((state) =>
    state.version === null
      ? fault('packages', `${state.name} is missing; it ${state.purpose}`, install)
      : fault('packages', `${state.name} ${state.version} is too old: ${QEMU_MIN_VERSION} or newer is needed`, install),
  );
  return there.length === 0 ? findings : [ok('packages', there.join(', ')), ...findings];
}

async function checkCgroup(): Promise<Finding[]> {
  const found = cgroupFault();
  return [
    found === null
      ? ok('cgroup', 'version 2: the kernel limits CPU, memory and processes of each sandbox')
      : warn(
          'cgroup',
          `${found}: a busy sandbox takes CPU from the others, and a QEMU under attack takes memory of the host`,
          'boot with systemd.unified_cgroup_hierarchy=1; Debian uses version 2 unless a parameter selects version 1',
        ),
  ];
}

async function checkUserNamespaces(): Promise<Finding[]> {
  const most = Number(await readFile('/proc/sys/user/max_user_namespaces', 'utf8'));
  return [
    most > 0
      ? ok('user namespaces', `up to ${most}`)
      : warn('user namespaces', 'switched off', "only Berth's tests need them: sysctl user.max_user_namespaces=10000"),
  ];
}
