// `berth login`, `logout` and `profile`.
import type { CommandSpec, GroupSpec } from '../program/command-spec.ts';

export const loginCommand: CommandSpec = {
  name: 'login',
  summary: 'sign in, by approving in a browser or with an API key',
  details:
    'What it gets is kept in a profile, in a file that you alone can read. --url says which service; a profile that is there remembers its own. ' +
    '--org and --project are what the profile is for from then on. Ends with 4 when the sign-in is denied or not approved in time.',
  options: [
    { flags: '--with-key', about: 'read an API key from stdin instead' },
    { flags: '--no-browser', about: 'do not offer to open the page in a browser of this machine' },
  ],
  examples: [
    'berth login --url https://berth.example.com',
    'berth login --profile staging --url https://berth.staging.example.com # a second one, beside the first',
    'berth login --with-key < key.txt',
  ],
  json: false,
  load: async () => (await import('./login.ts')).login,
};

export const logoutCommand: CommandSpec = {
  name: 'logout',
  summary: 'end the sign-in of a profile, at the service and here',
  details: 'Forgets it here also when the service cannot be reached, and says so.',
  examples: ['berth logout', 'berth logout --profile staging'],
  json: false,
  load: async () => (await import('./logout.ts')).logout,
};

export const profileGroup: GroupSpec = {
  name: 'profile',
  summary: 'services that you are signed in to',
  commands: [
    {
      name: 'ls',
      summary: 'list the profiles; no credential is shown',
      options: [{ flags: '--json', about: 'print them as JSON' }],
      examples: ['berth profile ls'],
      local: true,
      load: async () => (await import('./profiles.ts')).listProfiles,
    },
    {
      name: 'use',
      summary: 'use a profile from now on, where neither --profile nor BERTH_PROFILE names one',
      arguments: [{ name: '<profile>', about: 'its name' }],
      examples: ['berth profile use staging'],
      local: true,
      load: async () => (await import('./profiles.ts')).useProfile,
    },
    {
      name: 'rm',
      summary: 'end the sign-in of a profile and remove it',
      arguments: [{ name: '<profile>', about: 'its name' }],
      options: [{ flags: '-y, --yes', about: 'do not ask' }],
      examples: ['berth profile rm staging'],
      local: true,
      load: async () => (await import('./profiles.ts')).removeProfile,
    },
  ],
};
