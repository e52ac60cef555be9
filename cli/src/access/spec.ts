// `berth key` and `berth token`: what programs call the API with.
import { each, wholeNumber } from '../program/option-values.ts';
import type { GroupSpec, OptionSpec } from '../program/command-spec.ts';

/** As contract/src/route/limits.ts has it for both. */
const MOST_DAYS = 365;
const YES: OptionSpec = { flags: '-y, --yes', about: 'do not ask' };

export const keyGroup: GroupSpec = {
  name: 'key',
  summary: 'API keys of the org, for scripts, CI and platforms',
  commands: [
    {
      name: 'ls',
      summary: 'list the keys, newest first, expired and revoked ones too',
      examples: ['berth key ls'],
      load: async () => (await import('./keys.ts')).listKeys,
    },
    {
      name: 'create',
      summary: 'make a key that acts as you, and print it, this once',
      details: 'The key alone is on stdout. Needs berth login: a key makes no keys.',
      arguments: [{ name: '<name>', about: 'what it is for' }],
      options: [
        {
          flags: '--scope <permission>',
          about: 'something it may do, once for each; without any it may do what you may',
          parse: each,
        },
        {
          flags: '--expires-in-days <n>',
          about: 'until it ends by itself (default: never)',
          parse: wholeNumber(1, MOST_DAYS),
        },
      ],
      examples: [
        'berth key create ci --expires-in-days 90 > key.txt',
        'BERTH_API_KEY=$(berth key create agent --scope sandbox.read --scope sandbox.exec)',
      ],
      load: async () => (await import('./keys.ts')).createKey,
    },
    {
      name: 'revoke',
      summary: 'end a key at once',
      arguments: [{ name: '<key>', about: 'id' }],
      options: [YES],
      examples: ['berth key revoke key_uodiunxlni4uyqmllemsqh4l'],
      load: async () => (await import('./keys.ts')).revokeKey,
    },
  ],
};

export const tokenGroup: GroupSpec = {
  name: 'token',
  summary: 'your personal agent tokens, which drive agent sessions in all your orgs',
  commands: [
    {
      name: 'ls',
      summary: 'list your tokens, newest first, expired and revoked ones too',
      examples: ['berth token ls'],
      load: async () => (await import('./agent-tokens.ts')).listTokens,
    },
    {
      name: 'create',
      summary: 'make a token, and print it, this once',
      details: 'The token alone is on stdout. Needs berth login.',
      arguments: [{ name: '<name>', about: 'what it is for' }],
      options: [
        {
          flags: '--access <access>',
          about: 'read_only reads sessions, read_send also drives them',
          choices: ['read_only', 'read_send'],
        },
        { flags: '--can-approve', about: 'it may also answer approvals' },
        { flags: '--can-wake', about: 'it may also wake sandboxes' },
        {
          flags: '--expires-in-days <n>',
          about: 'until it ends by itself (default: 30)',
          parse: wholeNumber(1, MOST_DAYS),
        },
      ],
      examples: ['berth token create phone --access read_send --can-approve > token.txt'],
      load: async () => (await import('./agent-tokens.ts')).createToken,
    },
    {
      name: 'revoke',
      summary: 'end a token at once',
      arguments: [{ name: '<token>', about: 'id' }],
      options: [YES],
      examples: ['berth token revoke agt_uodiunxlni4uyqmllemsqh4l'],
      load: async () => (await import('./agent-tokens.ts')).revokeToken,
    },
  ],
};
