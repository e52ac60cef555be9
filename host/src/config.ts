// The daemon's configuration: the only reader of its flags and environment. A flag overrides its
// variable. Errors name the invalid option.
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { BRIDGE_VERSION } from '@berth/protocol/agent-errors.ts';
import { createVm } from '@berth/protocol/calls/vms.ts';
import { isLoopback } from '@berth/os/loopback.ts';
import type { SpliceBounds } from '@berth/protocol/splice.ts';
import type { AgentSettings } from './guest/agent-bridge.ts';
import type { FakeAgents } from './vm/fake/jail.ts';
import { DEFAULT_RATE_MBIT } from './network/slots/slot-programs.ts';
import type { DiskRates } from './vm/qemu/process/disk-rates.ts';
import type { AdmissionPolicy } from './vm/admission.ts';
import type { ListenOn } from './server/server.ts';
import type { StreamLimits } from './guest/guest-streams.ts';

export interface HostConfig {
  dataFolder: string;
  cacheFolder: string;
  driver: 'qemu' | 'fake';
  /** Folder of the built image; null: the newest in the cache folder. */
  imageFolder: string | null;
  listenOn: ListenOn;
  tokenFile: string;
  policy: AdmissionPolicy;
  /** Parent of the control groups of VMs; null: the host has no cgroup v2. */
  vmCgroup: string | null;
  /** Bounds of each VM. */
  diskRates: DiskRates;
  /** Bound of each VM and direction. */
  networkMbit: number;
  guestCidr: string;
  /** Encrypts disk and snapshots of each VM created from now on. */
  encryptDisks: boolean;
  /** An unprivileged process parses the responses of guests. */
  gateway: boolean;
  /** PEM file of further certificate authorities of model providers; null: none. */
  modelCaFile: string | null;
  /** Limits of the warm pool's size. */
  pool: { min: number; max: number };
  createDeadlineMs: number;
  /** Limits of raw streams into guests: number at once, idle timeout, lifetime. */
  streams: StreamLimits & Required<Omit<SpliceBounds, 'halfOpenMs'>>;
  logLevel: string;
  /** Tests only: the scripted agent, or an earlier bridge. */
  agents: AgentSettings;
  /** Tests only: agents of the guests of the fake driver. */
  fakeAgents: FakeAgents | null;
  /** Tests only; see vm/crash-point.ts. */
  crashAt: string | null;
}

interface Option {
  flag: string;
  variable: string;
  fallback?: string;
}

const OPTIONS = {
  dataFolder: { flag: 'data-dir', variable: 'BERTH_DATA_DIR' },
  cacheFolder: { flag: 'cache-dir', variable: 'BERTH_CACHE_DIR' },
  driver: { flag: 'driver', variable: 'BERTH_DRIVER', fallback: 'qemu' },
  imageFolder: { flag: 'image-folder', variable: 'BERTH_IMAGE_FOLDER' },
  socket: { flag: 'socket', variable: 'BERTH_HOST_SOCKET' },
  socketUid: { flag: 'socket-uid', variable: 'BERTH_HOST_SOCKET_UID' },
  socketGid: { flag: 'socket-gid', variable: 'BERTH_HOST_SOCKET_GID' },
  listen: { flag: 'listen', variable: 'BERTH_HOST_LISTEN' },
  plaintext: { flag: 'plaintext', variable: 'BERTH_HOST_PLAINTEXT', fallback: '0' },
  tokenFile: { flag: 'token-file', variable: 'BERTH_HOST_TOKEN_FILE' },
  cpuOvercommit: { flag: 'cpu-overcommit', variable: 'BERTH_CPU_OVERCOMMIT', fallback: '8' },
  memoryOvercommit: { flag: 'memory-overcommit', variable: 'BERTH_MEMORY_OVERCOMMIT', fallback: '1' },
  memoryReserveMib: { flag: 'memory-reserve-mib', variable: 'BERTH_MEMORY_RESERVE_MIB', fallback: '2048' },
  vmOverheadMib: { flag: 'vm-overhead-mib', variable: 'BERTH_VM_OVERHEAD_MIB', fallback: '128' },
  diskOvercommit: { flag: 'disk-overcommit', variable: 'BERTH_DISK_OVERCOMMIT', fallback: '4' },
  diskReserveGib: { flag: 'disk-reserve-gib', variable: 'BERTH_DISK_RESERVE_GIB', fallback: '5' },
  vmCgroup: { flag: 'vm-cgroup', variable: 'BERTH_VM_CGROUP' },
  vmDiskRequests: { flag: 'vm-disk-requests', variable: 'BERTH_VM_DISK_REQUESTS', fallback: '20000' },
  vmDiskMib: { flag: 'vm-disk-mib', variable: 'BERTH_VM_DISK_MIB', fallback: '500' },
  vmNetworkMbit: {
    flag: 'vm-network-mbit',
    variable: 'BERTH_VM_NETWORK_MBIT',
    fallback: String(DEFAULT_RATE_MBIT),
  },
  encryptDisks: { flag: 'encrypt-disks', variable: 'BERTH_ENCRYPT_DISKS', fallback: '0' },
  gateway: { flag: 'gateway', variable: 'BERTH_GATEWAY', fallback: '1' },
  modelCaFile: { flag: 'model-ca-file', variable: 'BERTH_MODEL_CA_FILE' },
  guestCidr: { flag: 'guest-cidr', variable: 'BERTH_GUEST_CIDR', fallback: '10.200.0.0/16' },
  poolMin: { flag: 'pool-min', variable: 'BERTH_POOL_MIN', fallback: '1' },
  poolMax: { flag: 'pool-max', variable: 'BERTH_POOL_MAX', fallback: '8' },
  createDeadlineSeconds: {
    flag: 'create-deadline-seconds',
    variable: 'BERTH_CREATE_DEADLINE_SECONDS',
    fallback: String(createVm.deadlineMs / 1_000),
  },
  streamsPerVm: { flag: 'streams-per-vm', variable: 'BERTH_STREAMS_PER_VM', fallback: '256' },
  streams: { flag: 'streams', variable: 'BERTH_STREAMS', fallback: '2048' },
  streamIdleSeconds: { flag: 'stream-idle-seconds', variable: 'BERTH_STREAM_IDLE_SECONDS', fallback: '3600' },
  streamLongestSeconds: { flag: 'stream-longest-seconds', variable: 'BERTH_STREAM_LONGEST_SECONDS', fallback: '86400' },
  logLevel: { flag: 'log-level', variable: 'BERTH_LOG_LEVEL', fallback: 'info' },
} satisfies Record<string, Option>;
type OptionName = keyof typeof OPTIONS;

/** @throws Error with one line that names the flag or variable and the allowed values */
export function readConfig(argv: readonly string[], environment: NodeJS.ProcessEnv): HostConfig {
  const { values } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(Object.values(OPTIONS).map(({ flag }) => [flag, { type: 'string' as const }])),
    strict: true,
    allowPositionals: false,
  });
  const text = (name: OptionName): string | null => {
    const option: Option = OPTIONS[name];
    const given = values[option.flag] ?? environment[option.variable] ?? option.fallback;
    return typeof given === 'string' && given !== '' ? given : null;
  };
  const number = (name: OptionName, min: number, max: number): number => {
    const given = text(name) ?? '';
    const value = Number(given);
    if (given.trim() === '' || !Number.isFinite(value) || value < min || value > max)
      throw new Error(`${optionLabel(name)}: '${given}' is not a number from ${min} to ${max}`);

    return value;
  };

  const flag = (name: OptionName): boolean => {
    const given = text(name);
    if (given !== '0' && given !== '1') throw new Error(`${optionLabel(name)}: '${given ?? ''}' must be 0 or 1`);

    return given === '1';
  };

  const dataFolder = resolve(
    text('dataFolder') ?? defaultFolder(environment, 'XDG_STATE_HOME', '/var/lib/berth', '.local/state'),
  );
  const driver = text('driver');
  if (driver !== 'qemu' && driver !== 'fake')
    throw new Error(`${optionLabel('driver')}: '${driver ?? ''}' must be qemu or fake`);

  return {
    dataFolder,
    cacheFolder: resolve(
      text('cacheFolder') ?? defaultFolder(environment, 'XDG_CACHE_HOME', '/var/cache/berth', '.cache'),
    ),
    driver,
    imageFolder: resolvedOrNull(text('imageFolder')),
    listenOn: listenOn(text, number, dataFolder),
    tokenFile: resolve(text('tokenFile') ?? join(dataFolder, 'secrets', 'host-token')),
    policy: {
      cpuOvercommit: number('cpuOvercommit', 0.1, 1_000),
      memoryOvercommit: number('memoryOvercommit', 0.1, 100),
      memoryReserveMib: number('memoryReserveMib', 0, 16_777_216),
      vmOverheadMib: number('vmOverheadMib', 0, 65_536),
      diskOvercommit: number('diskOvercommit', 0.1, 1_000),
      diskReserveGib: number('diskReserveGib', 0, 1_048_576),
    },
    vmCgroup: resolvedOrNull(text('vmCgroup')),
    diskRates: {
      requestsPerSecond: number('vmDiskRequests', 0, 10_000_000),
      mibPerSecond: number('vmDiskMib', 0, 1_000_000),
    },
    networkMbit: number('vmNetworkMbit', 1, 1_000_000),
    encryptDisks: flag('encryptDisks'),
    gateway: flag('gateway'),
    modelCaFile: resolvedOrNull(text('modelCaFile')),
    guestCidr: text('guestCidr') ?? '',
    pool: poolBounds(number),
    createDeadlineMs: number('createDeadlineSeconds', 1, 3_600) * 1_000,
    streams: {
      perVm: number('streamsPerVm', 1, 512),
      perHost: number('streams', 1, 65_536),
      idleMs: number('streamIdleSeconds', 1, 86_400) * 1_000,
      longestMs: number('streamLongestSeconds', 1, 604_800) * 1_000,
    },
    logLevel: text('logLevel') ?? 'info',
    agents: {
      scripted: environment['BERTH_SCRIPTED_AGENT'] === '1',
      bridgeVersion: Number(environment['BERTH_BRIDGE_VERSION'] ?? BRIDGE_VERSION),
    },
    fakeAgents: JSON.parse(environment['BERTH_FAKE_AGENTS'] ?? 'null') as FakeAgents | null,
    crashAt: environment['BERTH_CRASH_AT'] ?? null,
  };
}

function resolvedOrNull(path: string | null): string | null {
  return path === null ? null : resolve(path);
}

/**
 * A maximum of 0 disables the pool. Any other maximum below the minimum is refused as a mistake.
 */
function poolBounds(number: (name: OptionName, min: number, max: number) => number): HostConfig['pool'] {
  const [min, max] = [Math.floor(number('poolMin', 0, 1_000)), Math.floor(number('poolMax', 0, 1_000))];
  if (max > 0 && min > max)
    throw new Error(`${optionLabel('poolMin')}: ${min} exceeds ${optionLabel('poolMax')}, which is ${max}`);

  return { min: Math.min(min, max), max };
}

/** TCP for an address (`127.0.0.1:4801`), a unix socket otherwise. */
function listenOn(
  text: (name: OptionName) => string | null,
  number: (name: OptionName, min: number, max: number) => number,
  dataFolder: string,
): ListenOn {
  const listen = text('listen');
  if (listen === null) {
    const socket = text('socket') ?? join(dataFolder, 'run', 'host.sock');
    if (!isAbsolute(socket) || Buffer.byteLength(socket) > 107)
      throw new Error(`${optionLabel('socket')}: '${socket}' is not an absolute path of at most 107 bytes`);

    const id = (name: 'socketUid' | 'socketGid'): number | null =>
      text(name) === null ? null : number(name, 0, 4_294_967_294);
    return { socket, uid: id('socketUid'), gid: id('socketGid') };
  }
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s]+)):(\d{1,5})$/.exec(listen);
  const address = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (address === undefined || port > 65_535)
    throw new Error(`${optionLabel('listen')}: '${listen}' is not ADDRESS:PORT`);

  if (number('plaintext', 0, 1) !== 1 && !isLoopback(address)) {
    throw new Error(
      `${optionLabel('listen')}: '${listen}' is plain http beyond this machine: use a TLS or VPN tunnel to a ` +
        `loopback address, or ${optionLabel('plaintext')} 1 on a network you trust`,
    );
  }

  return { address, port };
}

function optionLabel(name: OptionName): string {
  return `--${OPTIONS[name].flag} (${OPTIONS[name].variable})`;
}

function defaultFolder(environment: NodeJS.ProcessEnv, variable: string, asRoot: string, underHome: string): string {
  if (process.getuid?.() === 0) return asRoot;

  const base = environment[variable];
  return join(base !== undefined && isAbsolute(base) ? base : join(homedir(), underHome), 'berth');
}
