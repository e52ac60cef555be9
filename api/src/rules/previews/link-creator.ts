// Decides whether the creator of a public preview link or a file link may still share it. A link
// never outlives the rights that made it.
import { ROLE_PERMISSIONS, role as roleName, type Permission } from '@berth/contract/route/permissions.ts';
import type { PreviewInactiveReason } from '@berth/contract/previews/previews.ts';

/** Current facts about the creator of a public link. */
export interface LinkCreator {
  /** The creator's role (as text) in the org of the sandbox; null: no member, or no account. */
  role: string | null;
  /** The link was made with an API key that is now revoked. */
  keyRevoked: boolean;
}

/** Reason why the link does not open; null if the creator still has the permission to share it. */
export function inactiveReason(
  { role, keyRevoked }: LinkCreator,
  permission: Permission = 'sandbox.preview.share',
): PreviewInactiveReason | null {
  if (keyRevoked) return 'api_key_revoked';
  if (role === null) return 'creator_removed';
  const known = roleName.safeParse(role).data;
  return known !== undefined && ROLE_PERMISSIONS[known].has(permission) ? null : 'creator_not_permitted';
}
