import type { CommandSpec } from '../program/command-spec.ts';

export const completionCommand: CommandSpec = {
  name: 'completion',
  summary: 'print a shell completion script for commands, options and ids',
  details:
    'bash: add it to ~/.bashrc. zsh: add it to ~/.zshrc, after compinit. fish: write it to the completions folder. ' +
    'Ids are requested from the API with the credential of your profile.',
  arguments: [{ name: '<shell>', about: 'name of the shell', choices: ['bash', 'zsh', 'fish'] }],
  examples: [
    'source <(berth completion bash)',
    'source <(berth completion zsh)',
    'berth completion fish > ~/.config/fish/completions/berth.fish',
  ],
  local: true,
  load: async () => (await import('./completion.ts')).completion,
};
