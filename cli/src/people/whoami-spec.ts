import type { CommandSpec } from '../program/command-spec.ts';

export const whoamiCommand: CommandSpec = {
  name: 'whoami',
  summary: 'show the current user, credential and service',
  options: [
    {
      flags: '--rename <name>',
      about: 'change your own name, which all members of your orgs see',
      fields: ['displayName'],
    },
  ],
  examples: ['berth whoami', 'berth whoami --rename "Ada King"', 'berth whoami --json | jq -r .email'],
  load: async () => (await import('./whoami.ts')).whoami,
};
