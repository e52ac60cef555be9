// Texts of API keys.
import type { KeyAccess } from '../rules/api-keys.ts';

const ACCESSES: Readonly<Record<KeyAccess, { label: string; detail: readonly string[] }>> = {
  all: { label: 'Everything', detail: ['what your role allows, except administration'] },
  run: { label: 'Run sandboxes', detail: ['sandboxes and agent sessions'] },
  read: { label: 'Read only', detail: ['changes nothing'] },
  chosen: { label: 'Chosen permissions', detail: ['tick each'] },
};

export const apiKeysText = {
  title: 'API keys',
  hint: 'Credentials for scripts, CI and platforms. A key acts as its creator, with at most its scopes.',
  empty: { title: 'No API keys yet', hint: 'Programs call the API with a key. It is shown once, when it is created.' },
  columns: { scopes: 'Scopes', by: 'Created by' },
  allScopes: 'all',
  noScopes: 'none',
  scopes: (count: number) => `${count} ${count === 1 ? 'permission' : 'permissions'}`,
  revoke: {
    hint: 'Programs that use the key are refused at once. Its public preview links stop, too. This cannot be undone.',
    submit: 'Revoke key',
    failed: 'The key was not revoked',
  },
  createWords: {
    title: 'Create an API key',
    hint: 'The key acts as you. If your role changes, so does the key.',
    submit: 'Create key',
    failed: 'The key was not created',
  },
  name: { label: 'Name', hint: 'Where the key is used, such as the name of a pipeline.' },
  fields: { access: 'Scopes', permissions: 'Permissions', lifetime: 'Expires' },
  accesses: ACCESSES,
  lifetimes: {
    7: 'in 7 days',
    30: 'in 30 days',
    90: 'in 90 days',
    180: 'in 180 days',
    365: 'in 365 days',
    never: 'never',
  },
  secret: {
    title: 'Copy the key now',
    hint: 'The service keeps no copy: it is shown only here, and only once.',
    what: 'API key',
  },
  use: 'Use it as:',
  header: 'Authorization: Bearer …',
} as const;
