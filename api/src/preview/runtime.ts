// Dependencies shared by all preview requests of a process. Built once, in gate.ts.
import type { ServiceContext } from '../services/context/context.ts';
import type { PreviewAccessCache } from '../services/previews/access-cache.ts';
import type { PreviewBounds } from './bounds.ts';
import type { CallerAddress } from './caller-address.ts';
import type { ConnectionPools } from './connection-pools.ts';

export interface PreviewRuntime {
  context: ServiceContext;
  accessCache: PreviewAccessCache;
  bounds: PreviewBounds;
  pools: ConnectionPools;
  address: CallerAddress;
  /** Name of the preview cookie. */
  cookieName: string;
  /** Public scheme of previews, and the port reported to apps where `Host` names none. */
  origin: { proto: 'http' | 'https'; port: string };
}
