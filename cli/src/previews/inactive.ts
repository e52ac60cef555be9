// Text for links that are neither expired nor revoked but do not open.
import type { Preview } from '@berth/sdk';

const TEXTS: Readonly<Record<string, string>> = {
  api_key_revoked: 'its API key was revoked',
  creator_removed: 'its creator left the org',
  creator_not_permitted: 'its creator may no longer share',
};

/**
 * The reason in words; null for a link that opens. A newer service may know more reasons, an older
 * one none.
 */
export function inactiveText({ inactiveReason }: Partial<Pick<Preview, 'inactiveReason'>>): string | null {
  return inactiveReason == null ? null : (TEXTS[inactiveReason] ?? inactiveReason);
}
