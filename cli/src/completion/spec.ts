// `berth completion`.
import type { CommandSpec } from '../program/command-spec.ts';

export const completionCommand: CommandSpec = {
  name: 'completion',
  summary: 'print the completion of commands, options and ids for a shell',
  details:
    'bash: in ~/.bashrc. zsh: in ~/.zshrc, behind compinit. fish: a file of its own. Ids of sandboxes and projects are asked for with the credential of your profile.',
  arguments: [{ name: '<shell>', about: 'the shell that reads it', choices: ['bash', 'zsh', 'fish'] }],
  examples: [
    'source <(berth completion bash)',
    'source <(berth completion zsh)',
    'berth completion fish > ~/.config/fish/completions/berth.fish',
  ],
  local: true,
  load: async () => (await import('./completion.ts')).completion,
};
