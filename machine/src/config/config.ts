// The operator's configuration: flags over BERTH_* variables over defaults. The only reader of the
// environment in this workspace's verbs.
import { resolve } from 'node:path';
import { AGENT_IDS, agentSelection, ALLOWED_SELECTIONS, type AgentId } from '@berth/image/build/agent-selection.ts';
import { z } from 'zod';
import { OperatorFailure } from '../output/failure.ts';
import { defaultCacheFolder, defaultDataFolder } from './folders.ts';

export interface Config {
  /** Folder of everything that must not be lost. */
  dataFolder: string;
  /** Folder of everything that can be made again. */
  cacheFolder: string;
  listen: string;
  port: number;
  /** The operator's PostgreSQL; null: the embedded one. */
  databaseUrl: string | null;
  /** Address range of the network slots, a /16 to /24. */
  guestCidr: string;
  /** vCPUs promised per CPU of the host. */
  cpuOvercommit: number;
  /** Memory never given to VMs. */
  memoryReserveMib: number;
  /** Absolute path of the operator's plan catalogue; null: the self-hosted plan alone. */
  plansFile: string | null;
  /** Coding agents of the image. */
  agents: readonly AgentId[];
  /** `fake` runs no VMs: for tests of the verbs themselves. */
  driver: 'qemu' | 'fake';
}

/** Flags as commander returns them: text or absent. */
export interface Flags {
  dataDir?: string;
  cacheDir?: string;
  listen?: string;
  port?: string;
  databaseUrl?: string;
  guestCidr?: string;
  cpuOvercommit?: string;
  memoryReserveMib?: string;
  plansFile?: string;
  agents?: string;
  driver?: string;
}

interface Setting<T> {
  flag: string;
  variables: readonly string[];
  schema: z.ZodType<T, string>;
  allowed: string;
}

const wholeNumber = z.string().regex(/^\d+$/).transform(Number);

const SETTINGS = {
  port: {
    flag: '--port',
    variables: ['BERTH_PORT'],
    schema: wholeNumber.pipe(z.int().min(1).max(65_535)),
    allowed: 'a port, 1 to 65535',
  },
  listen: {
    flag: '--listen',
    variables: ['BERTH_LISTEN'],
    schema: z.union([z.ipv4(), z.ipv6()]),
    allowed: 'an IP address of this machine',
  },
  databaseUrl: {
    flag: '--database-url',
    variables: ['BERTH_DATABASE_URL', 'DATABASE_URL'],
    schema: z.url({ protocol: /^postgres(ql)?$/ }),
    allowed: 'a postgresql:// URL',
  },
  guestCidr: {
    flag: '--guest-cidr',
    variables: ['BERTH_GUEST_CIDR'],
    schema: z.cidrv4().refine((cidr) => Number(cidr.split('/')[1]) >= 16 && Number(cidr.split('/')[1]) <= 24),
    allowed: 'an IPv4 network of /16 to /24',
  },
  cpuOvercommit: {
    flag: '--cpu-overcommit',
    variables: ['BERTH_CPU_OVERCOMMIT'],
    schema: z
      .string()
      .regex(/^\d+(\.\d+)?$/)
      .transform(Number)
      .pipe(z.number().min(1).max(64)),
    allowed: 'a number, 1 to 64',
  },
  memoryReserveMib: {
    flag: '--memory-reserve-mib',
    variables: ['BERTH_MEMORY_RESERVE_MIB'],
    schema: wholeNumber.pipe(z.int().min(0).max(16_777_216)),
    allowed: 'MiB as a whole number',
  },
  plansFile: {
    flag: '--plans-file',
    variables: ['BERTH_PLANS_FILE'],
    schema: z
      .string()
      .min(1)
      .transform((path) => resolve(path)),
    allowed: 'the path of a file',
  },
  agents: {
    flag: '--agents',
    variables: ['BERTH_AGENTS'],
    schema: agentSelection,
    allowed: ALLOWED_SELECTIONS,
  },
  driver: { flag: '--driver', variables: ['BERTH_DRIVER'], schema: z.enum(['qemu', 'fake']), allowed: 'qemu or fake' },
} satisfies Record<string, Setting<unknown>>;

const DEFAULTS = {
  port: 4800,
  listen: '127.0.0.1',
  databaseUrl: null,
  guestCidr: '10.200.0.0/16',
  cpuOvercommit: 8,
  memoryReserveMib: 2048,
  plansFile: null,
  agents: AGENT_IDS,
  driver: 'qemu',
} as const;

/**
 * Throws an {@link OperatorFailure} that names the flag or variable, the value and the allowed
 * values.
 */
export function readConfig(flags: Flags, environment: Readonly<NodeJS.ProcessEnv>): Config {
  const read = <K extends keyof typeof SETTINGS>(
    name: K,
  ): z.output<(typeof SETTINGS)[K]['schema']> | (typeof DEFAULTS)[K] => {
    const setting: Setting<unknown> = SETTINGS[name];
    const variable = setting.variables.find(
      (candidate) => environment[candidate] !== undefined && environment[candidate] !== '',
    );
    const text = flags[name] ?? (variable === undefined ? undefined : environment[variable]);
    if (text === undefined) return DEFAULTS[name];

    const parsed = setting.schema.safeParse(text);
    if (!parsed.success) {
      const source = flags[name] === undefined ? variable : setting.flag;
      const shown = name === 'databaseUrl' ? 'its value' : `'${text}'`;
      throw new OperatorFailure(`${source}: ${shown} is not ${setting.allowed}`);
    }
    return parsed.data as z.output<(typeof SETTINGS)[K]['schema']>;
  };
  return {
    dataFolder: folder('--data-dir', flags.dataDir, defaultDataFolder(environment)),
    cacheFolder: folder('--cache-dir', flags.cacheDir, defaultCacheFolder(environment)),
    listen: read('listen'),
    port: read('port'),
    databaseUrl: read('databaseUrl'),
    guestCidr: read('guestCidr'),
    cpuOvercommit: read('cpuOvercommit'),
    memoryReserveMib: read('memoryReserveMib'),
    plansFile: read('plansFile'),
    agents: read('agents'),
    driver: read('driver'),
  };
}

/** Flags as variables, for a service without flags. Folders, also as defaults, are absolute. */
export function settingsOf(flags: Flags, config: Config): Record<string, string> {
  const given = Object.entries(SETTINGS).flatMap(
    ([
      name,
      {
        variables: [variable],
      },
    ]) => {
      const text = name === 'plansFile' ? config.plansFile : flags[name as keyof typeof SETTINGS];
      return text === undefined || text === null ? [] : [[variable, text]];
    },
  );
  return {
    ...(Object.fromEntries(given) as Record<string, string>),
    BERTH_DATA_DIR: config.dataFolder,
    BERTH_CACHE_DIR: config.cacheFolder,
  };
}

function folder(flag: string, given: string | undefined, fallback: string): string {
  if (given === '') throw new OperatorFailure(`${flag}: the path is empty`);

  return resolve(given ?? fallback);
}
