// Defaults of a new sandbox: profile, VM size, persistence. Pure.
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

interface AllocationRequest {
  profile?: Profile | undefined;
  machineSize?: MachineSize | undefined;
  persistencePolicy?: PersistencePolicy | undefined;
  mode?: 'ephemeral' | undefined;
}

interface ProjectDefaults {
  profile: Profile | null;
  persistencePolicy: PersistencePolicy | null;
}

export interface ChosenAllocation {
  profile: Profile;
  machineSize: MachineSize;
  allocation: Allocation;
  persistencePolicy: PersistencePolicy;
}

/**
 * An ephemeral sandbox runs, and is billed, until it ends. Sleep would end it, so it never sleeps
 * by itself.
 */
const EPHEMERAL_PERSISTENCE_POLICY: PersistencePolicy = 'always_on';

/**
 * The profile of the request; else of the requested VM size (spec: "inferred from the requested
 * machine size"); else the project's default; else `auto`. A VM size overrides the profile's tier.
 */
export function chooseAllocation(request: AllocationRequest, defaults: ProjectDefaults): ChosenAllocation {
  const profile = request.profile ?? inferredProfile(request) ?? defaults.profile ?? DEFAULT_PROFILE;
  const machineSize = request.machineSize ?? PROFILE_SIZES[profile];
  return {
    profile,
    machineSize,
    allocation: MACHINE_SIZES[machineSize],
    persistencePolicy:
      request.mode === 'ephemeral'
        ? EPHEMERAL_PERSISTENCE_POLICY
        : (request.persistencePolicy ?? defaults.persistencePolicy ?? DEFAULT_PERSISTENCE_POLICY),
  };
}

function inferredProfile({ machineSize }: AllocationRequest): Profile | undefined {
  return machineSize === undefined ? undefined : SIZE_PROFILES[machineSize];
}
