// `berth project`.
import { keyValue, machineHours, wholeNumberOrNone } from '../program/option-values.ts';
import type { GroupSpec, OptionSpec } from '../program/command-spec.ts';

const PROJECT = { name: '[project]', about: 'id; without one the project in use' };
const MOST_IDLE_MINUTES = 43_200;

/** In the words of the API's fields. */
const DEFAULTS: readonly OptionSpec[] = [
  {
    flags: '--use-case <text>',
    about: 'what it is for; external: machines for users of your product, which may be ephemeral',
  },
  {
    flags: '--default-repository <repository>',
    about: 'owner/repo or https URL that its sandboxes clone; none takes it away',
  },
  { flags: '--default-branch <branch>', about: "branch of it; '' takes it away" },
  { flags: '--default-profile <name>', about: 'what its sandboxes are for, which sets their size; none takes it away' },
  {
    flags: '--default-persistence-policy <policy>',
    about: 'what becomes of idle sandboxes',
    choices: ['always_on', 'sleep_resume', 'none'],
  },
  {
    flags: '--default-idle-minutes <n>',
    about: 'minutes without use until a sandbox sleeps; 0: never; none: as the service has it',
    parse: wholeNumberOrNone(0, MOST_IDLE_MINUTES),
  },
  { flags: '--wake-on-use <on|off>', about: 'whether use wakes a sandbox that sleeps', choices: ['on', 'off'] },
  { flags: '--metadata <key=value>', about: 'a label, once for each; replaces all that are there', parse: keyValue },
  {
    flags: '--repo-token-file <file>',
    about: 'file with the token for its repositories; -: from stdin. It is never shown again',
  },
  { flags: '--repo-username <name>', about: 'user name beside that token, where the git host wants one' },
];

export const projectGroup: GroupSpec = {
  name: 'project',
  summary: 'projects, which sandboxes belong to, and what they fall back to',
  commands: [
    {
      name: 'ls',
      summary: 'list the projects of the org, newest first',
      examples: ['berth project ls', "berth project ls --json | jq -r '.projects[].id'"],
      load: async () => (await import('./projects.ts')).listProjects,
    },
    {
      name: 'get',
      summary: 'show a project',
      arguments: [PROJECT],
      examples: ['berth project get', 'berth project get prj_uodiunxlni4uyqmllemsqh4l --json'],
      load: async () => (await import('./projects.ts')).getProject,
    },
    {
      name: 'create',
      summary: 'make a project, and print its id',
      arguments: [{ name: '[name]', about: 'without one the service makes it up' }],
      options: DEFAULTS,
      examples: [
        'berth project create storefront --use-case external --wake-on-use on',
        'berth project create site --default-repository acme/site --repo-token-file token.txt',
      ],
      load: async () => (await import('./project-write.ts')).createProject,
    },
    {
      name: 'update',
      summary: 'change a project; what is not said stays',
      arguments: [PROJECT],
      options: [
        { flags: '--name <name>', about: 'a new name' },
        ...DEFAULTS,
        { flags: '--no-repo-credentials', about: 'forget the token for its repositories' },
      ],
      examples: [
        'berth project update --default-idle-minutes 60',
        'gh auth token | berth project update prj_uodiunxlni4uyqmllemsqh4l --repo-token-file -',
      ],
      load: async () => (await import('./project-write.ts')).updateProject,
    },
    {
      name: 'use',
      summary: 'use a project from now on, where neither --project nor BERTH_PROJECT_ID names one',
      arguments: [{ name: '<project>', about: 'id or name' }],
      examples: ['berth project use storefront'],
      json: false,
      load: async () => (await import('./projects.ts')).useProject,
    },
    {
      name: 'rm',
      summary: 'remove a project that has no sandboxes; its usage stays',
      details: 'Asks first. Without a terminal it needs --yes.',
      arguments: [{ name: '<project>', about: 'id' }],
      options: [{ flags: '-y, --yes', about: 'do not ask' }],
      examples: ['berth project rm prj_uodiunxlni4uyqmllemsqh4l --yes'],
      load: async () => (await import('./projects.ts')).removeProject,
    },
    {
      name: 'caps',
      summary: 'show or set how many machine hours of a project a billing period may use',
      details: "It holds inside the org's cap: berth org caps.",
      arguments: [PROJECT],
      options: [
        {
          flags: '--machine-hours <hours>',
          about: "the project's own cap; none: no cap of its own",
          parse: machineHours,
        },
      ],
      examples: ['berth project caps', 'berth project caps prj_uodiunxlni4uyqmllemsqh4l --machine-hours 100'],
      load: async () => (await import('./caps.ts')).projectCaps,
    },
  ],
};
