// A complete Berth on this computer, for `up` and `demo`: database, host daemon and API of one data
// folder.
import { readProbe } from '@berth/host/template.ts';
import type { BootstrapResult } from '@berth/protocol/operator-commands.ts';
import type { InstancePaths } from '../supervisor/instance.ts';
import { bootstrap } from './control-plane/api-command.ts';
import { keyBesideData } from './control-plane/key-placement.ts';
import { CONTROL_PLANE } from './control-plane/role.ts';
import { apiUrl, previewUrl, publicUrl, servedUrls } from './control-plane/service.ts';
import { DATABASE } from './database/service.ts';
import { EMULATION_RISK, requireIsolation } from './host/emulation.ts';
import { HOST } from './host/service.ts';
import { startRoles } from '../supervisor/start-roles.ts';
import type { RolesOptions } from '../supervisor/start-roles.ts';

export interface RunningInstallation {
  url: string;
  publicUrl: string;
  /** Parent origin of previews. */
  previewUrl: string;
  paths: InstancePaths;
  /** Contains the token at the very first start only. */
  first: BootstrapResult;
  /** Stops API, host daemon and database; VMs keep running. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Starts every role and resolves when the API responds and has its first account. Throws like
 * {@link startRoles}.
 */
export async function startInstallation(
  options: Omit<RolesOptions, 'roles' | 'urls'>,
  signal: AbortSignal,
): Promise<RunningInstallation> {
  const { config, environment, progress } = options;
  const urls = { url: apiUrl(config), publicUrl: publicUrl(config, environment) };
  const probe = config.driver === 'qemu' ? await readProbe(config.cacheFolder) : null;
  if (probe !== null) requireIsolation(probe.accelerator, servedUrls(config, environment), environment);
  if (probe?.accelerator === 'tcg') progress.say(`! ${EMULATION_RISK}`);

  const beside = await keyBesideData(config, environment);
  if (beside !== null) progress.say(`! ${beside.detail}\n  ${beside.remedy}`);
  const roles = [...(config.databaseUrl === null ? [DATABASE] : []), HOST, CONTROL_PLANE];
  const { context, result, stop } = await startRoles(
    { ...options, roles, urls },
    (started) => progress.step('first account and key', () => bootstrap(started)),
    signal,
  );
  return { ...urls, previewUrl: previewUrl(config, environment), paths: context.paths, first: result, stop };
}
