// Debian packages that Berth needs: present, missing or too old. Read-only; `apt.ts` installs.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { RoleName } from '../supervisor/role.ts';

const run = promisify(execFile);

/**
 * From 8.2 on QEMU maps the template's memory read-only; before, a compromised QEMU could write
 * every tenant's template.
 */
export const QEMU_MIN_VERSION = '8.2';

const EVERY_ROLE: readonly RoleName[] = ['database', 'host', 'control-plane'];
const HOST_ONLY: readonly RoleName[] = ['host'];
const CONTROL_PLANE_ONLY: readonly RoleName[] = ['control-plane'];

/** Packages, their purpose, and the roles that need them. */
const REQUIRED_PACKAGES = [
  ['qemu-system-x86', 'runs the VMs', HOST_ONLY],
  ['qemu-utils', 'creates their disks', HOST_ONLY],
  ['bubblewrap', 'confines QEMU, the API, the database and the image build', EVERY_ROLE],
  ['nftables', 'isolates sandboxes and connects them to the internet', HOST_ONLY],
  ['iproute2', 'creates their network namespaces', HOST_ONLY],
  ['util-linux', 'drops privileges, enters namespaces, locks files', EVERY_ROLE],
  ['mount', 'mounts in separate namespaces', HOST_ONLY],
  ['passwd', 'creates the system user', EVERY_ROLE],
  ['libjemalloc2', 'returns the memory of the API after peaks', CONTROL_PLANE_ONLY],
  ['curl', 'calls the API from a shell', EVERY_ROLE],
  ['ca-certificates', 'verifies TLS certificates', EVERY_ROLE],
  ['debian-archive-keyring', "provides the keys of Debian's archive, the source of the image", HOST_ONLY],
] as const;

const TEST_PACKAGES = [
  ['procps', 'lists processes in the tests'],
  ['cpio', 'reads the initramfs in the tests'],
  ['openssh-client', 'creates keys and connections in the tests'],
  ['git', 'serves repositories in the tests'],
  ['chromium', 'opens the pages in the tests'],
  ['tmux', 'keeps the shells of fake VMs in the tests'],
  ['python3', 'runs a generated client'],
  ['python3-httpx', 'sends the requests of that client'],
  ['mypy', 'checks the types of that client'],
  ['zsh', 'completes commands in the tests'],
  ['fish', 'completes commands in the tests'],
] as const;

type PackageName = (typeof REQUIRED_PACKAGES | typeof TEST_PACKAGES)[number][0];

/** Packages that must come together from the release with a recent enough QEMU. */
export const QEMU_PACKAGES: readonly PackageName[] = ['qemu-system-x86', 'qemu-utils'];

export interface PackageState {
  name: PackageName;
  purpose: string;
  /** Null: not installed. */
  version: string | null;
  /** True if installed but too old. */
  tooOld: boolean;
}

export interface PackageSelection {
  /** Also the packages of the tests. */
  forTests?: boolean;
  /** The roles of this computer; all of them by default. */
  roles?: readonly RoleName[];
}

/** State of the packages that the roles need, optionally with those of the tests. */
export async function readPackages({ forTests = false, roles }: PackageSelection = {}): Promise<PackageState[]> {
  const required = REQUIRED_PACKAGES.filter(([, , users]) => roles?.some((role) => users.includes(role)) ?? true);
  const wanted = forTests ? [...required, ...TEST_PACKAGES] : required;
  const versions = await installedVersions(wanted.map(([name]) => name));
  return wanted.map(([name, purpose]) => {
    const version = versions.get(name) ?? null;
    return {
      name,
      purpose,
      version,
      tooOld: version !== null && QEMU_PACKAGES.includes(name) && !isAtLeast(version, QEMU_MIN_VERSION),
    };
  });
}

/** Compares the upstream part of a Debian version (`1:10.0.2+ds-2`) with `major.minor`. */
export function isAtLeast(debianVersion: string, wanted: string): boolean {
  const upstream = debianVersion.replace(/^\d+:/, '');
  const [major = 0, minor = 0] = upstream.split('.').map((part) => Number.parseInt(part, 10));
  const [wantedMajor = 0, wantedMinor = 0] = wanted.split('.').map(Number);
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}

interface Distribution {
  id: string;
  versionId: string;
  codename: string;
  prettyName: string;
}

/** Parses /etc/os-release. */
export async function readDistribution(): Promise<Distribution> {
  const text = await readFile('/etc/os-release', 'utf8');
  const value = (key: string): string => new RegExp(`^${key}="?([^"\n]*)"?$`, 'm').exec(text)?.[1] ?? '';
  return {
    id: value('ID'),
    versionId: value('VERSION_ID'),
    codename: value('VERSION_CODENAME'),
    prettyName: value('PRETTY_NAME'),
  };
}

/** True for the Debian releases on which Berth is tested. */
export function isTested(distribution: Distribution): boolean {
  return distribution.id === 'debian' && (distribution.versionId === '12' || distribution.versionId === '13');
}

async function installedVersions(names: readonly string[]): Promise<Map<string, string>> {
  // Exit code 1 if a name is unknown; dpkg-query still lists the others.
  const { stdout } = await run('dpkg-query', [
    '--show',
    '--showformat',
    '${Package} ${db:Status-Status} ${Version}\n',
    ...names,
  ]).catch((error: { code?: unknown; stdout?: string }) => {
    if (error.code === 1 && error.stdout !== undefined) return { stdout: error.stdout };

    throw error;
  });
  const versions = new Map<string, string>();
  for (const line of stdout.split('\n')) {
    const [name, status, version] = line.split(' ');
    if (name !== undefined && status === 'installed' && version !== undefined) versions.set(name, version);
  }
  return versions;
}
