// Dependencies shared by all preview requests of a process. Built once, in gate.ts.
import type { ServiceContext } from '../services/context/context.ts';
import type { PreviewAccessCache } from '../services/previews/access-cache.ts';
import type { PreviewBounds } from './bounds.ts';
import type { CallerAddress } from './caller-address.ts';
import type { ConnectionPools } from './connection-pools.ts';
import type { CookieRules } from './headers.ts';
import type { Visitors } from './visitors.ts';

/** Limits the look-ups of invalid API keys per address (call/rate-limit.ts). */
export interface KeyGuard {
  guard<T>(address: string, credential: { sha256: Buffer }, lookUp: () => Promise<T>): Promise<T>;
}

export interface PreviewRuntime {
  context: ServiceContext;
  accessCache: PreviewAccessCache;
  bounds: PreviewBounds;
  pools: ConnectionPools;
  address: CallerAddress;
  cookies: CookieRules;
  visitors: Visitors;
  /** Public scheme of previews. */
  proto: 'http' | 'https';
  /** Browsers trust the previews' scheme and name (isolation.ts). */
  isTrustworthy: boolean;
  failures: KeyGuard;
}
