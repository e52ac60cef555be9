// A role of this computer in an installation: the services that the supervisor keeps running, and
// their prerequisites. A computer has one role or several.
import type { Config } from '../config/config.ts';
import type { InstancePaths } from './instance.ts';
import type { ServiceUser } from './service-user.ts';
import type { Service } from './service.ts';

export type RoleName = 'database' | 'host' | 'control-plane';

export interface RoleContext {
  /** Folder of the program's files. */
  checkout: string;
  config: Config;
  paths: InstancePaths;
  user: ServiceUser;
  /** Folder of the control groups of VMs; absent: VMs get none. */
  vmCgroup?: string | null;
  /** The operator's BERTH_* variables that have no flag. */
  environment: Readonly<Record<string, string>>;
}

export interface Role {
  name: RoleName;
  /** Throws an OperatorFailure if the services cannot run here. Changes nothing. */
  check(context: RoleContext): Promise<void>;
  /** Writes the files that the services read. The instance's folders exist. */
  prepare(context: RoleContext, environment: Readonly<NodeJS.ProcessEnv>): Promise<void>;
  /** Services in the order of their start. */
  services(context: RoleContext): readonly Service[];
}

const nothing = async (): Promise<void> => undefined;

/** A role without checks or files. */
export function plainRole(name: RoleName, services: Role['services']): Role {
  return { name, check: nothing, prepare: nothing, services };
}
