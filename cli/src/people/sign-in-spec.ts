// `berth login`, `logout`, `sign-in` and `profile`.
import type { CommandSpec, GroupSpec } from '../program/command-spec.ts';

export const loginCommand: CommandSpec = {
  name: 'login',
  summary: 'sign in with a browser or an API key',
  details:
    'The credential is stored in a profile, in a file that only you can read. ' +
    '--url selects the service, and is stored in the profile. ' +
    '--org and --project set the defaults of the profile. ' +
    'Exit code: 4 if the sign-in is denied or not approved in time.',
  options: [
    { flags: '--with-key', about: 'read an API key from stdin instead' },
    { flags: '--no-browser', about: 'do not offer to open a browser' },
  ],
  examples: [
    'berth login --url https://berth.example.com',
    'berth login --profile staging --url https://berth.staging.example.com # a second profile',
    'berth login --with-key < key.txt',
  ],
  json: false,
  load: async () => (await import('./login.ts')).login,
};

export const logoutCommand: CommandSpec = {
  name: 'logout',
  summary: 'sign out of a profile',
  details:
    'Removes the local credential even if the service cannot be reached, except with --all. ' +
    'API keys and agent tokens stay valid.',
  options: [{ flags: '--all', about: 'end every sign-in of your account, in all browsers and on all devices' }],
  examples: ['berth logout', 'berth logout --profile staging', 'berth logout --all'],
  json: false,
  load: async () => (await import('./logout.ts')).logout,
};

export const signInGroup: GroupSpec = {
  name: 'sign-in',
  summary: 'list and end your sign-ins in browsers and on devices',
  commands: [
    {
      name: 'ls',
      summary: 'list your sign-ins, newest first',
      examples: ['berth sign-in ls'],
      load: async () => (await import('./sign-ins.ts')).listSignIns,
    },
    {
      name: 'end',
      summary: 'end a sign-in immediately, with its access tokens and open streams',
      details: 'berth logout --all ends all of them.',
      arguments: [{ name: '<sign-in>', about: 'sign-in id' }],
      options: [{ flags: '-y, --yes', about: 'skip the confirmation' }],
      examples: ['berth sign-in end sgn_uodiunxlni4uyqmllemsqh4l'],
      load: async () => (await import('./sign-ins.ts')).endSignIn,
    },
  ],
};

export const profileGroup: GroupSpec = {
  name: 'profile',
  summary: 'manage profiles: services and their credentials',
  commands: [
    {
      name: 'ls',
      summary: 'list the profiles, without credentials',
      options: [{ flags: '--json', about: 'print JSON' }],
      examples: ['berth profile ls'],
      local: true,
      load: async () => (await import('./profiles.ts')).listProfiles,
    },
    {
      name: 'use',
      summary: 'set the default profile, used without --profile and BERTH_PROFILE',
      arguments: [{ name: '<profile>', about: 'profile name' }],
      examples: ['berth profile use staging'],
      local: true,
      load: async () => (await import('./profiles.ts')).useProfile,
    },
    {
      name: 'rm',
      summary: 'sign out of a profile and remove it',
      arguments: [{ name: '<profile>', about: 'profile name' }],
      options: [{ flags: '-y, --yes', about: 'skip the confirmation' }],
      examples: ['berth profile rm staging'],
      local: true,
      load: async () => (await import('./profiles.ts')).removeProfile,
    },
  ],
};
