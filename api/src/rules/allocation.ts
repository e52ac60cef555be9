// What a new sandbox gets where the caller said nothing: profile, machine tier, persistence. Pure.
import {
  DEFAULT_MACHINE_SIZE,
  MACHINE_SIZES,
  PROFILE_SIZES,
  SIZE_PROFILES,
  type Allocation,
  type MachineSize,
  type Profile,
} from '@berth/contract/machine-sizes.ts';
import { DEFAULT_PERSISTENCE_POLICY, type PersistencePolicy } from '@berth/contract/sandbox-fields.ts';

export interface AllocationRequest {
  profile?: Profile | undefined;
  machineSize?: MachineSize | undefined;
  persistencePolicy?: PersistencePolicy | undefined;
}

export interface ProjectDefaults {
  profile: Profile | null;
  persistencePolicy: PersistencePolicy | null;
}

export interface ChosenAllocation {
  profile: Profile;
  allocation: Allocation;
  persistencePolicy: PersistencePolicy;
}

/**
 * The request's own values, then the project's defaults; without either the profile is inferred from the machine size (spec: Sandbox),
 * which is `small` when none was asked for. A machine size overrides the tier of the profile.
 */
export function chooseAllocation(request: AllocationRequest, defaults: ProjectDefaults): ChosenAllocation {
  const profile = request.profile ?? defaults.profile ?? SIZE_PROFILES[request.machineSize ?? DEFAULT_MACHINE_SIZE];
  return {
    profile,
    allocation: MACHINE_SIZES[request.machineSize ?? PROFILE_SIZES[profile]],
    persistencePolicy: request.persistencePolicy ?? defaults.persistencePolicy ?? DEFAULT_PERSISTENCE_POLICY,
  };
}
