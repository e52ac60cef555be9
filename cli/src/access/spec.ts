// `berth key` and `berth token`: credentials of programs.
import { each, wholeNumber } from '../program/option-values.ts';
import type { GroupSpec, OptionSpec } from '../program/command-spec.ts';

/** Limit of both, as in contract/src/route/limits.ts. */
const MOST_DAYS = 365;
const YES: OptionSpec = { flags: '-y, --yes', about: 'skip the confirmation' };

export const keyGroup: GroupSpec = {
  name: 'key',
  summary: 'manage API keys of the org, for scripts, CI and platforms',
  commands: [
    {
      name: 'ls',
      summary: 'list API keys, newest first, including expired and revoked keys',
      examples: ['berth key ls'],
      load: async () => (await import('./keys.ts')).listKeys,
    },
    {
      name: 'create',
      summary: 'create an API key that acts as you, and print it once',
      details: 'Only the key is written to stdout. Requires berth login: an API key cannot create API keys.',
      arguments: [{ name: '<name>', about: 'display name' }],
      options: [
        {
          flags: '--scope <permission>',
          about: 'permission of the key, repeatable (default: all of your permissions)',
          parse: each,
          fields: ['scopes'],
        },
        {
          flags: '--expires-in-days <n>',
          about: 'lifetime in days (default: unlimited)',
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
      summary: 'revoke an API key immediately',
      arguments: [{ name: '<key>', about: 'key id' }],
      options: [YES],
      examples: ['berth key revoke key_uodiunxlni4uyqmllemsqh4l'],
      load: async () => (await import('./keys.ts')).revokeKey,
    },
  ],
};

export const tokenGroup: GroupSpec = {
  name: 'token',
  summary: 'manage personal agent tokens, which drive agent sessions in all your orgs',
  commands: [
    {
      name: 'ls',
      summary: 'list your tokens, newest first, including expired and revoked tokens',
      examples: ['berth token ls'],
      load: async () => (await import('./agent-tokens.ts')).listTokens,
    },
    {
      name: 'create',
      summary: 'create a token and print it once',
      details: 'Only the token is written to stdout. Requires berth login.',
      arguments: [{ name: '<name>', about: 'display name' }],
      options: [
        {
          flags: '--access <access>',
          about: 'read_only: read sessions; read_send: also send to them',
          choices: ['read_only', 'read_send'],
        },
        { flags: '--can-approve', about: 'allow answering approvals' },
        { flags: '--can-wake', about: 'allow waking sandboxes' },
        {
          flags: '--expires-in-days <n>',
          about: 'lifetime in days (default: 30)',
          parse: wholeNumber(1, MOST_DAYS),
        },
      ],
      examples: ['berth token create phone --access read_send --can-approve > token.txt'],
      load: async () => (await import('./agent-tokens.ts')).createToken,
    },
    {
      name: 'revoke',
      summary: 'revoke a token immediately',
      arguments: [{ name: '<token>', about: 'token id' }],
      options: [YES],
      examples: ['berth token revoke agt_uodiunxlni4uyqmllemsqh4l'],
      load: async () => (await import('./agent-tokens.ts')).revokeToken,
    },
  ],
};
