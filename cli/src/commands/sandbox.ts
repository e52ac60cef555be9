// `berth sandbox`.
import { execCommand } from './exec.ts';
import type { CommandSpec, GroupSpec } from '../spec.ts';

const ls: CommandSpec = {
  name: 'ls',
  summary: 'list the sandboxes of the org, newest first',
  options: [{ flags: '--end-user <id>', about: 'only those of this end user of yours' }],
  examples: ['berth sandbox ls', "berth sandbox ls --end-user customer-7 --json | jq -r '.sandboxes[].id'"],
  load: async () => (await import('../actions/sandbox-ls.ts')).listSandboxes,
};

export const sandboxGroup: GroupSpec = {
  name: 'sandbox',
  alias: 'sb',
  summary: 'make sandboxes, look at them, change and end them',
  commands: [ls, execCommand],
};
