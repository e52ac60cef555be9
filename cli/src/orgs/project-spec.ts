import { keyValue, machineHours, wholeNumberOrNone } from '../program/option-values.ts';
import { EGRESS_ABOUT, parseEgress } from '../sandboxes/egress.ts';
import type { GroupSpec, OptionSpec } from '../program/command-spec.ts';

const PROJECT = { name: '[project]', about: 'project id (default: the current project)' };
const MOST_IDLE_MINUTES = 43_200;

/** Named like the fields of the API. */
const DEFAULTS: readonly OptionSpec[] = [
  {
    flags: '--use-case <text>',
    about: 'purpose; external: sandboxes for users of your product, may be ephemeral (--ttl-seconds)',
  },
  {
    flags: '--default-repository <repository>',
    about:
      'repository to clone: owner/repo, or https URL on a host of BERTH_GIT_ALLOW_URLS of the service; ' +
      'none: no default',
  },
  { flags: '--default-branch <branch>', about: "branch of that repository; '': no default" },
  { flags: '--default-profile <name>', about: 'sandbox profile, which sets the size; none: no default' },
  {
    flags: '--default-persistence-policy <policy>',
    about: 'keep idle sandboxes running or put them to sleep; none: no default',
    choices: ['always_on', 'sleep_resume', 'none'],
  },
  {
    flags: '--default-idle-minutes <n>',
    about: 'minutes until an idle sandbox sleeps; 0: never; none: service default',
    parse: wholeNumberOrNone(0, MOST_IDLE_MINUTES),
  },
  { flags: '--default-egress <policy>', about: `network of new sandboxes: ${EGRESS_ABOUT}`, parse: parseEgress },
  { flags: '--wake-on-use <on|off>', about: 'wake sleeping sandboxes on use', choices: ['on', 'off'] },
  {
    flags: '--agent-approvals <ask|never>',
    about: 'whether agents ask before they act; never: they carry out everything',
    choices: ['ask', 'never'],
  },
  { flags: '--metadata <key=value>', about: 'label, repeatable; replaces all existing labels', parse: keyValue },
  {
    flags: '--repo-token-file <file>',
    about: 'file with the token of the git host; -: read stdin',
    fields: ['repoCredentials', 'repoCredentials.token'],
  },
  {
    flags: '--repo-username <name>',
    about: 'user name for that token, if the git host requires one',
    fields: ['repoCredentials.username'],
  },
];

export const projectGroup: GroupSpec = {
  name: 'project',
  summary: 'manage projects and their defaults for sandboxes',
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
      summary: 'create a project and print its id',
      arguments: [{ name: '[name]', about: 'project name (default: generated)' }],
      options: DEFAULTS,
      examples: [
        'berth project create storefront --use-case external --wake-on-use on',
        'berth project create site --default-repository acme/site --repo-token-file token.txt',
      ],
      load: async () => (await import('./project-write.ts')).createProject,
    },
    {
      name: 'update',
      summary: 'change the given settings of a project',
      arguments: [PROJECT],
      options: [
        { flags: '--name <name>', about: 'new name' },
        ...DEFAULTS,
        { flags: '--no-repo-credentials', about: 'delete the stored token of the git host' },
      ],
      examples: [
        'berth project update --default-idle-minutes 60',
        'gh auth token | berth project update prj_uodiunxlni4uyqmllemsqh4l --repo-token-file -',
      ],
      load: async () => (await import('./project-write.ts')).updateProject,
    },
    {
      name: 'use',
      summary: 'set the default project, used without --project and BERTH_PROJECT_ID',
      arguments: [{ name: '<project>', about: 'id or name' }],
      examples: ['berth project use storefront'],
      json: false,
      load: async () => (await import('./projects.ts')).useProject,
    },
    {
      name: 'rm',
      summary: 'delete a project without sandboxes; its usage is kept',
      details: 'Asks for confirmation; without a terminal, --yes is required.',
      arguments: [{ name: '<project>', about: 'project id' }],
      options: [{ flags: '-y, --yes', about: 'skip the confirmation' }],
      examples: ['berth project rm prj_uodiunxlni4uyqmllemsqh4l --yes'],
      load: async () => (await import('./projects.ts')).removeProject,
    },
    {
      name: 'agent-credentials',
      summary: 'store, delete or list the model keys of agents; a key never enters a sandbox',
      details:
        'set reads the key from stdin, or prompts for it. ls shows which keys are stored, not the keys. ' +
        'Requires berth login: an API key cannot manage model keys.',
      arguments: [
        { name: '<action>', about: 'what to do', choices: ['set', 'rm', 'ls'] },
        { name: '[agent]', about: 'agent_one (Codex) or agent_two (Claude Code); required by set and rm' },
        PROJECT,
      ],
      options: [{ flags: '--endpoint <url>', about: "base URL from the operator's list (default: its first)" }],
      examples: [
        'berth project agent-credentials set agent_two < key.txt',
        'berth project agent-credentials rm agent_two',
        'berth project agent-credentials ls',
      ],
      load: async () => (await import('./agent-credentials.ts')).agentCredentials,
    },
    {
      name: 'caps',
      summary: 'show or set the cap of machine hours of a project per billing period',
      details: "The org's cap applies as well: berth org caps.",
      arguments: [PROJECT],
      options: [
        {
          flags: '--machine-hours <hours>',
          about: 'cap of the project; none: no cap',
          parse: machineHours,
          fields: ['sandboxMachineHourLimit'],
        },
      ],
      examples: ['berth project caps', 'berth project caps prj_uodiunxlni4uyqmllemsqh4l --machine-hours 100'],
      load: async () => (await import('./caps.ts')).projectCaps,
    },
  ],
};
