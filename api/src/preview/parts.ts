// What every visit to a preview works with. Made once, in gate.ts.
import type { ServiceContext } from '../services/context/context.ts';
import type { PreviewBounds } from './bounds.ts';
import type { CallerAddress } from './caller-address.ts';
import type { Machines } from './machines.ts';

export interface PreviewParts {
  context: ServiceContext;
  bounds: PreviewBounds;
  machines: Machines;
  address: CallerAddress;
  /** Of our cookie. */
  cookieName: string;
  /** How people reach previews, as apps are told: scheme, and the port where `Host` names none. */
  reachedBy: { proto: 'http' | 'https'; port: string };
}
