// What a new sandbox gets where the caller said nothing: profile, machine tier, persistence. Pure.
import {
  DEFAULT_PROFILE,
  MACHINE_SIZES,
  PROFILE_SIZES,
  SIZE_PROFILES,
  type Allocation,
  type MachineSize,
  type Profile,
} from '@berth/contract/sandboxes/machine-sizes.ts';
import { DEFAULT_PERSISTENCE_POLICY, type PersistencePolicy } from '@berth/contract/sandboxes/fields.ts';

export interface AllocationRequest {
  profile?: Profile | undefined;
  machineSize?: MachineSize | undefined;
  persistencePolicy?: PersistencePolicy | undefined;
  mode?: 'ephemeral' | undefined;
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
 * An ephemeral sandbox runs, and is billed, until it ends: sleep would end it, so nothing puts it
 * to sleep by itself.
 */
const EPHEMERAL_PERSISTENCE_POLICY: PersistencePolicy = 'always_on';

/**
 * The request's own profile; else that of the machine size asked for (spec: "inferred from the
 * requested machine size"); else the project's default; else `auto`. A machine size overrides the
 * tier of the profile.
 */
export function chooseAllocation(request: AllocationRequest, defaults: ProjectDefaults): ChosenAllocation {
  const profile = request.profile ?? inferredProfile(request) ?? defaults.profile ?? DEFAULT_PROFILE;
  return {
    profile,
    allocation: MACHINE_SIZES[request.machineSize ?? PROFILE_SIZES[profile]],
    persistencePolicy:
      request.mode === 'ephemeral'
        ? EPHEMERAL_PERSISTENCE_POLICY
        : (request.persistencePolicy ?? defaults.persistencePolicy ?? DEFAULT_PERSISTENCE_POLICY),
  };
}

function inferredProfile({ machineSize }: AllocationRequest): Profile | undefined {
  return machineSize === undefined ? undefined : SIZE_PROFILES[machineSize];
}
