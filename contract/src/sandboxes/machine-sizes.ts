// Machine sizes, profiles, and the size that each profile starts with.
import { z } from 'zod';

export interface Allocation {
  vcpu: number;
  memoryGb: number;
  diskGb: number;
}

export const machineSize = z
  .enum(['small', 'medium', 'large', 'xlarge'])
  .meta({ id: 'MachineSize', description: 'Size of a sandbox: vCPUs, memory and disk.' });
export type MachineSize = z.infer<typeof machineSize>;

export const MACHINE_SIZES: { readonly [size in MachineSize]: Allocation } = {
  small: { vcpu: 1, memoryGb: 1, diskGb: 10 },
  medium: { vcpu: 2, memoryGb: 4, diskGb: 20 },
  large: { vcpu: 4, memoryGb: 8, diskGb: 40 },
  xlarge: { vcpu: 8, memoryGb: 16, diskGb: 80 },
};

/** spec: Sandbox, `profile`. */
export const profile = z
  .enum(['auto', 'agent-small', 'agent-standard', 'build-heavy', 'browser-heavy', 'repo-large', 'long-running'])
  .meta({
    id: 'Profile',
    description: 'Intended use of a sandbox; selects its initial machine size. `auto` follows measured use.',
  });
export type Profile = z.infer<typeof profile>;

/** Profile of a sandbox created without profile and machine size. */
export const DEFAULT_PROFILE: Profile = 'auto';

/** Initial machine size of each profile. */
export const PROFILE_SIZES: { readonly [name in Profile]: MachineSize } = {
  auto: 'small',
  'agent-small': 'small',
  'agent-standard': 'medium',
  'build-heavy': 'large',
  'browser-heavy': 'large',
  'repo-large': 'xlarge',
  'long-running': 'medium',
};

/**
 * Profile of a sandbox created with a machine size alone (spec: "the profile is inferred from the
 * requested machine size").
 */
export const SIZE_PROFILES: { readonly [size in MachineSize]: Profile } = {
  small: 'agent-small',
  medium: 'agent-standard',
  large: 'build-heavy',
  xlarge: 'repo-large',
};
