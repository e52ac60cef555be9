// Texts that lists of credentials share.
import type { KeyState } from '../rules/api-keys.ts';

const STATES: Readonly<Record<KeyState, string>> = { active: 'Active', expired: 'Expired', revoked: 'Revoked' };

export const credentialsText = {
  columns: { name: 'Name', state: 'State', expires: 'Expires', used: 'Last used' },
  state: (state: KeyState) => STATES[state],
  never: 'never',
  revoke: 'Revoke',
  revokeOf: (name: string) => `Revoke ${name}`,
  notActive: (state: KeyState) => `It is ${STATES[state].toLowerCase()} already.`,
  revokeWords: (name: string) => ({ title: `Revoke ${name}?`, done: `${name} is revoked` }),
  done: 'I have stored it',
} as const;
