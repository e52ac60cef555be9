// The bounds of what passes through previews; the contract's, but in tests.
import { PREVIEW_PROXY } from '@berth/contract/route/limits.ts';

export type PreviewBounds = { readonly [name in keyof typeof PREVIEW_PROXY]: number };

export function boundsOf(changed: Partial<PreviewBounds> = {}): PreviewBounds {
  return { ...PREVIEW_PROXY, ...changed };
}
