// Limits of proxied requests: the contract's, overridden in tests.
import { PREVIEW_PROXY } from '@berth/contract/route/limits.ts';

export type PreviewBounds = { readonly [name in keyof typeof PREVIEW_PROXY]: number };

export function boundsOf(changed: Partial<PreviewBounds> = {}): PreviewBounds {
  return { ...PREVIEW_PROXY, ...changed };
}
