// `berth whoami`.
import type { CommandSpec } from '../spec.ts';

export const whoamiCommand: CommandSpec = {
  name: 'whoami',
  summary: 'show as whom, with what and where commands call the API',
  examples: ['berth whoami', 'berth whoami --json | jq -r .email'],
  load: async () => (await import('../actions/whoami.ts')).whoami,
};
