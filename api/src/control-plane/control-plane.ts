// The composition root: builds the control plane from its configuration, for the server's process,
// tests and benchmarks. server.ts adds the adapters.
import type { Logger } from 'pino';
import { newCallControl, type CallControl, type CallControlOptions } from '../call/control.ts';
import type { ServeConfig } from '../config/config.ts';
import { BOUND_ROUTES } from '../routes/bound-routes.ts';
import type { ServiceContext } from '../services/context/context.ts';
import type { ClientSignIn } from '../services/people/client-sign-in-port.ts';
import { PreviewAccessCache } from '../services/previews/access-cache.ts';
import { openSignIn } from '../sign-in/sign-in.ts';
import { openCore, type ControlPlaneCore, type CoreConfig, type CoreOverrides } from './core.ts';

type ControlPlaneConfig = CoreConfig & Partial<Pick<ServeConfig, 'oidc'>>;

interface ControlPlaneOverrides extends CoreOverrides, CallControlOptions {}

/** Services used by the adapters. */
export interface Services {
  context: ServiceContext;
  signIn: ClientSignIn;
  calls: CallControl;
  previewAccess: PreviewAccessCache;
}

type ControlPlane = ControlPlaneCore & Services;

/** Requires a migrated database. */
export async function openControlPlane(
  config: ControlPlaneConfig,
  log: Logger,
  overrides: ControlPlaneOverrides = {},
): Promise<ControlPlane> {
  const core = await openCore(config, log, overrides);
  const { db, settings, secretKey } = core.context;
  const signIn = openSignIn({ db, settings, secretKey, log, oidc: config.oidc ?? null });
  return { ...core, ...newServices(core.context, signIn, overrides) };
}

/** With separate caches and rate limits, like a separate process. */
export function newServices(
  context: ServiceContext,
  signIn: ClientSignIn,
  overrides: CallControlOptions = {},
): Services {
  return {
    context,
    signIn,
    calls: newCallControl(context, BOUND_ROUTES, overrides),
    previewAccess: new PreviewAccessCache(context),
  };
}
