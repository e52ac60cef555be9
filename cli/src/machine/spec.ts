// Commands of the host and of development, only in a checkout. The launcher decides by the first
// word that these need root. verbs.ts implements them and must not be in the package.
import type { Chapter, CommandSpec, GroupSpec, OptionSpec } from '../program/command-spec.ts';

/** A command without its implementation. */
export type MachineCommand = Omit<CommandSpec, 'load'>;
export type MachineGroup = Omit<GroupSpec, 'commands'> & { commands: readonly MachineCommand[] };

const FOLDERS: readonly OptionSpec[] = [
  {
    flags: '--data-dir <folder>',
    about: 'persistent data (BERTH_DATA_DIR; default /var/lib/berth, or ~/.local/state/berth if not root)',
  },
  {
    flags: '--cache-dir <folder>',
    about: 'cached data (BERTH_CACHE_DIR; default /var/cache/berth, or ~/.cache/berth if not root)',
  },
];

const DATABASE: OptionSpec = {
  flags: '--database-url <url>',
  about: 'external PostgreSQL instead of the embedded server (BERTH_DATABASE_URL)',
};

const SERVICE: readonly OptionSpec[] = [
  ...FOLDERS,
  { flags: '--port <port>', about: 'port of the API (BERTH_PORT; default 4800)' },
  { flags: '--listen <address>', about: 'address of the API (BERTH_LISTEN; default 127.0.0.1)' },
  DATABASE,
  {
    flags: '--guest-cidr <network>',
    about: 'address range of sandboxes (BERTH_GUEST_CIDR; default 10.200.0.0/16)',
  },
  { flags: '--cpu-overcommit <factor>', about: 'vCPUs allocated per CPU (BERTH_CPU_OVERCOMMIT; default 8)' },
  {
    flags: '--memory-reserve-mib <MiB>',
    about: 'memory reserved for the host (BERTH_MEMORY_RESERVE_MIB; default 2048)',
  },
  {
    flags: '--plans-file <file>',
    about: 'JSON file with the plans (BERTH_PLANS_FILE; default: one plan without limits)',
  },
  {
    flags: '--agents <ids>',
    about: 'coding agents of the image, or none (BERTH_AGENTS; default agent_one,agent_two)',
  },
  {
    flags: '--driver <name>',
    about: 'qemu, or fake for tests, without isolation (BERTH_DRIVER; default qemu)',
  },
];

const PASSED_ON = { name: '[arguments...]', about: 'arguments of the program' };

const up: MachineCommand = {
  name: 'up',
  summary: 'run the service in the foreground',
  details: 'The first start prints an API key and a sign-in link.',
  options: SERVICE,
  examples: ['./berth up', 'BERTH_PUBLIC_URL=https://berth.example.com ./berth up --data-dir /srv/berth'],
  local: true,
};

const down: MachineCommand = {
  name: 'down',
  summary: 'stop the service; sandboxes keep running',
  options: [...FOLDERS, { flags: '--sleep', about: 'put sandboxes to sleep; the next start wakes them' }],
  examples: ['./berth down'],
  local: true,
};

const install: MachineCommand = {
  name: 'install',
  summary: 'run the service under systemd, now and after each start of this host',
  details: 'Settings (flags and BERTH_* variables) are kept in /etc/berth/berth.env, also by later installs.',
  options: [
    { flags: '--systemd', about: 'the service manager; required' },
    { flags: '--no-start', about: 'write and enable the unit without starting it' },
    ...SERVICE,
  ],
  examples: ['./berth install --systemd', 'BERTH_PUBLIC_URL=https://berth.example.com ./berth install --systemd'],
  local: true,
};

const uninstall: MachineCommand = {
  name: 'uninstall',
  summary: 'put sandboxes to sleep and remove the service from systemd; keeps the data',
  options: [],
  examples: ['./berth uninstall'],
  local: true,
};

const doctor: MachineCommand = {
  name: 'doctor',
  summary: 'check this host and suggest fixes',
  options: SERVICE,
  examples: ['./berth doctor'],
  local: true,
};

const demo: MachineCommand = {
  name: 'demo',
  summary: 'set up this host, create a sandbox, run commands and destroy it',
  options: SERVICE,
  examples: ['./berth demo'],
  local: true,
};

const keys: MachineGroup = {
  name: 'keys',
  summary: 'manage operator API keys on this host',
  commands: [
    {
      name: 'create',
      summary: 'create an API key and print it',
      options: [...FOLDERS, { flags: '--name <name>', about: 'display name', default: 'operator' }, DATABASE],
      examples: ['BERTH_API_KEY=$(./berth keys create --name ci)'],
      local: true,
    },
  ],
};

const ownerLink: MachineCommand = {
  name: 'owner-link',
  summary: "create a sign-in link for the owner of the operator's org, and print it",
  options: [...FOLDERS, DATABASE],
  examples: ['./berth owner-link'],
  local: true,
};

const plans: MachineGroup = {
  name: 'plans',
  summary: 'manage the plans of orgs',
  commands: [
    {
      name: 'set',
      summary: 'assign a plan to an org',
      options: [
        ...FOLDERS,
        { flags: '--org <id>', about: "org id (default: the operator's org)" },
        { flags: '--plan <id>', about: 'id of the plan in the catalogue' },
        DATABASE,
      ],
      examples: ['./berth plans set --org org_7tpinkhqvgwuiymix32hcuz2 --plan team'],
      local: true,
    },
  ],
};

const ssoOff: MachineCommand = {
  name: 'sso-off',
  summary: "end an org's requirement of single sign-on, for owners who cannot sign in",
  options: [...FOLDERS, { flags: '--org <id>', about: 'org id' }, DATABASE],
  examples: ['./berth sso-off --org org_7tpinkhqvgwuiymix32hcuz2'],
  local: true,
};

const SECRET = { name: '<secret>', about: 'secret-key or host-token' };

const secrets: MachineGroup = {
  name: 'secrets',
  summary: 'rotate the secret key and the host token of this installation',
  commands: [
    {
      name: 'show',
      summary: 'list the current and former secrets by id, and what needs them',
      options: [...FOLDERS, DATABASE],
      examples: ['./berth secrets show'],
      local: true,
    },
    {
      name: 'rotate',
      summary: 'replace a secret while the service runs; the former one stays valid while needed',
      arguments: [SECRET],
      options: [...FOLDERS, DATABASE],
      examples: ['./berth secrets rotate secret-key', './berth secrets rotate host-token'],
      local: true,
    },
    {
      name: 'retire',
      summary: 'remove former secrets that nothing needs',
      arguments: [SECRET],
      options: [
        ...FOLDERS,
        { flags: '--force', about: 'remove needed ones too: their sign-ins and links end' },
        DATABASE,
      ],
      examples: ['./berth secrets retire secret-key'],
      local: true,
    },
  ],
};

const test: MachineCommand = {
  name: 'test',
  summary: 'set up this host and run the tests',
  arguments: [{ name: '[filters...]', about: 'substrings of test file paths (default: all files of the tier)' }],
  options: [
    ...FOLDERS,
    { flags: '--name <pattern>', about: 'run only tests with a matching title' },
    { flags: '--profile', about: 'measure CPU time per file and write docs/measurements/test-suite.md' },
    { flags: '--tier <tier>', about: 'fast, long (*.long.test.ts) or all (default: fast, with filters all)' },
    { flags: '--whole', about: 'run every case of the costly tests, not a sample' },
  ],
  examples: ['./berth test', './berth test api/test/routes e2e/ssh'],
  local: true,
};

const bench: MachineCommand = {
  name: 'bench',
  summary: 'set up this host and run a benchmark',
  arguments: [{ name: '<name>', about: 'file in bench/, without extension' }, PASSED_ON],
  options: FOLDERS,
  examples: ['./berth bench create --json'],
  passThrough: true,
  local: true,
};

const chaos: MachineCommand = {
  name: 'chaos',
  summary: 'inject random faults into a separate Berth and check that no acknowledged write is lost',
  arguments: [PASSED_ON],
  options: FOLDERS,
  examples: ['./berth chaos --minutes 10 --seed 1'],
  passThrough: 'unknown',
  local: true,
};

const fuzz: MachineCommand = {
  name: 'fuzz',
  summary: 'send random requests to a separate Berth and check the responses against the contract',
  arguments: [PASSED_ON],
  options: FOLDERS,
  examples: ['./berth fuzz --seed 1'],
  passThrough: 'unknown',
  local: true,
};

const fuzzApi: MachineCommand = {
  name: 'fuzz-api',
  summary: 'send requests generated from openapi.json to a separate Berth and check the responses',
  arguments: [PASSED_ON],
  options: FOLDERS,
  examples: ['./berth fuzz-api --seed 1 --runs 500'],
  passThrough: 'unknown',
  local: true,
};

export const serviceEntries: readonly (MachineCommand | MachineGroup)[] = [
  up,
  down,
  install,
  uninstall,
  doctor,
  demo,
  keys,
  ownerLink,
  plans,
  ssoOff,
  secrets,
];
export const developmentEntries: readonly MachineCommand[] = [test, bench, chaos, fuzz, fuzzApi];

export const SERVICE_HEADING = 'Service on this host (as root)';

/**
 * Adds the implementations. @param loadOf called with the words of a command, such as `keys create`
 */
export function loadedEntries(
  entries: readonly (MachineCommand | MachineGroup)[],
  loadOf: (words: string) => CommandSpec['load'],
): Chapter['entries'] {
  return entries.map((entry) => {
    if (!('commands' in entry)) return { ...entry, load: loadOf(entry.name) };
    return {
      ...entry,
      commands: entry.commands.map((command) => ({ ...command, load: loadOf(`${entry.name} ${command.name}`) })),
    };
  });
}
