import type { CommandSpec } from '../program/command-spec.ts';

export const whoamiCommand: CommandSpec = {
  name: 'whoami',
  summary: 'show the current user, credential and service',
  examples: ['berth whoami', 'berth whoami --json | jq -r .email'],
  load: async () => (await import('./whoami.ts')).whoami,
};
