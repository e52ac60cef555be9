// The commands for the machine that the service runs on, of a checkout alone: `up`, `down`,
// `doctor`, `demo`, `keys`, and those for who works on Berth itself. The launcher knows by the
// first word that these need root. What runs them is in machine-verbs.ts, which the package must
// not have.
import type { Chapter, CommandSpec, GroupSpec, OptionSpec } from '../program/command-spec.ts';

/** A command that gets its `load` where it can be run. */
export type MachineCommand = Omit<CommandSpec, 'load'>;
export type MachineGroup = Omit<GroupSpec, 'commands'> & { commands: readonly MachineCommand[] };

const FOLDERS: readonly OptionSpec[] = [
  {
    flags: '--data-dir <folder>',
    about: 'what must not be lost (BERTH_DATA_DIR; default /var/lib/berth, or ~/.local/state/berth of a user)',
  },
  {
    flags: '--cache-dir <folder>',
    about: 'what can be made again (BERTH_CACHE_DIR; default /var/cache/berth, or ~/.cache/berth of a user)',
  },
];

const DATABASE: OptionSpec = {
  flags: '--database-url <url>',
  about: 'a PostgreSQL of yours instead of the embedded one (BERTH_DATABASE_URL)',
};

const SERVICE: readonly OptionSpec[] = [
  ...FOLDERS,
  { flags: '--port <port>', about: 'port of the API (BERTH_PORT; default 4800)' },
  { flags: '--listen <address>', about: 'address of the API (BERTH_LISTEN; default 127.0.0.1)' },
  DATABASE,
  {
    flags: '--guest-cidr <network>',
    about: 'addresses for the network slots of sandboxes (BERTH_GUEST_CIDR; default 10.200.0.0/16)',
  },
  { flags: '--cpu-overcommit <factor>', about: 'vCPUs promised per CPU (BERTH_CPU_OVERCOMMIT; default 8)' },
  { flags: '--memory-reserve-mib <MiB>', about: 'memory kept from sandboxes (BERTH_MEMORY_RESERVE_MIB; default 2048)' },
  {
    flags: '--plans-file <file>',
    about: 'what plans allow, as JSON (BERTH_PLANS_FILE; default: one plan without limits)',
  },
  {
    flags: '--driver <name>',
    about: 'qemu, or fake: no isolation, for tests of Berth itself (BERTH_DRIVER; default qemu)',
  },
];

const PASSED_ON = { name: '[arguments...]', about: 'for the run' };

const up: MachineCommand = {
  name: 'up',
  summary: 'start the service and stay; the first start prints an API key and a link to sign in',
  options: SERVICE,
  examples: ['./berth up', 'BERTH_PUBLIC_URL=https://berth.example.com ./berth up --data-dir /srv/berth'],
  local: true,
};

const down: MachineCommand = {
  name: 'down',
  summary: 'stop the service of a data folder; sandboxes go on running',
  options: FOLDERS,
  examples: ['./berth down'],
  local: true,
};

const doctor: MachineCommand = {
  name: 'doctor',
  summary: 'check this machine and say how to mend what is wrong',
  options: SERVICE,
  examples: ['./berth doctor'],
  local: true,
};

const demo: MachineCommand = {
  name: 'demo',
  summary: 'set this machine up and show the main job: create a sandbox, run commands, destroy it',
  options: SERVICE,
  examples: ['./berth demo'],
  local: true,
};

const keys: MachineGroup = {
  name: 'keys',
  summary: 'API keys of the operator, made on the machine itself',
  commands: [
    {
      name: 'create',
      summary: 'make an API key and print it',
      options: [...FOLDERS, { flags: '--name <name>', about: 'what the key is for', default: 'operator' }, DATABASE],
      examples: ['BERTH_API_KEY=$(./berth keys create --name ci)'],
      local: true,
    },
  ],
};

const ownerLink: MachineCommand = {
  name: 'owner-link',
  summary: 'make a link that lets the owner of the first org sign in, and print it',
  options: [...FOLDERS, DATABASE],
  examples: ['./berth owner-link'],
  local: true,
};

const plans: MachineGroup = {
  name: 'plans',
  summary: 'plans of orgs',
  commands: [
    {
      name: 'set',
      summary: 'give an org a plan of the catalogue',
      options: [
        ...FOLDERS,
        { flags: '--org <id>', about: 'the org (default: the first)' },
        { flags: '--plan <id>', about: 'the plan, by its id in the catalogue' },
        DATABASE,
      ],
      examples: ['./berth plans set --org org_7tpinkhqvgwuiymix32hcuz2 --plan team'],
      local: true,
    },
  ],
};

const test: MachineCommand = {
  name: 'test',
  summary: 'set this machine up and run the tests',
  arguments: [{ name: '[filters...]', about: "parts of test files' paths; without any: all files" }],
  options: [
    ...FOLDERS,
    { flags: '--name <pattern>', about: 'only tests whose title matches' },
    { flags: '--profile', about: 'measure CPU time per file and write docs/measurements/test-suite.md' },
  ],
  examples: ['./berth test', './berth test api/test/routes e2e/ssh'],
  local: true,
};

const bench: MachineCommand = {
  name: 'bench',
  summary: 'set this machine up and run a benchmark; what follows its name goes to it',
  arguments: [{ name: '<name>', about: 'file in bench/ without its ending' }, PASSED_ON],
  options: FOLDERS,
  examples: ['./berth bench create --json'],
  passThrough: true,
  local: true,
};

const chaos: MachineCommand = {
  name: 'chaos',
  summary: 'set this machine up and break a Berth of its own at random for a while; nothing acknowledged may be lost',
  arguments: [PASSED_ON],
  options: FOLDERS,
  examples: ['./berth chaos --minutes 10 --seed 1'],
  passThrough: 'unknown',
  local: true,
};

const fuzz: MachineCommand = {
  name: 'fuzz',
  summary:
    'set this machine up and send random requests to a Berth of its own; each must be answered as the contract says',
  arguments: [PASSED_ON],
  options: FOLDERS,
  examples: ['./berth fuzz --seed 1'],
  passThrough: 'unknown',
  local: true,
};

const fuzzApi: MachineCommand = {
  name: 'fuzz-api',
  summary:
    'set this machine up and send requests made of openapi.json alone to a Berth of its own; each answer must be one of the document',
  arguments: [PASSED_ON],
  options: FOLDERS,
  examples: ['./berth fuzz-api --seed 1 --runs 500'],
  passThrough: 'unknown',
  local: true,
};

export const serviceEntries: readonly (MachineCommand | MachineGroup)[] = [
  up,
  down,
  doctor,
  demo,
  keys,
  ownerLink,
  plans,
];
export const developmentEntries: readonly MachineCommand[] = [test, bench, chaos, fuzz, fuzzApi];

export const SERVICE_HEADING = 'The service on this machine (as root)';

/**
 * The commands with what runs each; a command of a group is asked for with the group's name: `keys
 * create`.
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
