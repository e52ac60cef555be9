// Scopes and states of API keys.
import { ADMINISTRATION, PERMISSIONS, type api, type Permission } from '@berth/sdk';

/** `all`: every permission of the creator's role. `chosen`: as ticked. */
export type KeyAccess = 'all' | 'run' | 'read' | 'chosen';

const RUN = /^(?:sandbox|agent_session)\.|^project\.read$/;
/** Hosts belong to the installation, not to the org. */
const READ = /^(?!hosts\.).+\.read$/;

/** Permissions that a key can have. */
export const KEY_PERMISSIONS = PERMISSIONS.filter((one) => !(ADMINISTRATION as readonly string[]).includes(one));

/** Scopes of a new key; null: all permissions. */
export function scopesOf(access: KeyAccess, chosen: readonly Permission[]): Permission[] | null {
  if (access === 'all') return null;
  if (access === 'chosen') return KEY_PERMISSIONS.filter((one) => chosen.includes(one));
  return KEY_PERMISSIONS.filter((one) => (access === 'run' ? RUN : READ).test(one));
}

export type KeyState = 'active' | 'expired' | 'revoked';

export function keyStateOf(
  { revokedAt, expiresAt }: Pick<api.ApiKey, 'revokedAt' | 'expiresAt'>,
  now: number,
): KeyState {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && Date.parse(expiresAt) <= now ? 'expired' : 'active';
}
