// `berth whoami`.
import type { CommandSpec } from '../program/command-spec.ts';

export const whoamiCommand: CommandSpec = {
  name: 'whoami',
  summary: 'show as whom, with what and where commands call the API',
  examples: ['berth whoami', 'berth whoami --json | jq -r .email'],
  load: async () => (await import('./whoami.ts')).whoami,
};
