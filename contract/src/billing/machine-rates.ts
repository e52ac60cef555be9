// Resource costs of the installation, for estimates. Configured with the plans (BERTH_PLANS_FILE).
import { z } from 'zod';

const usdAnHour = z.number().nonnegative().max(10_000);

/** US dollars per hour of one vCPU, one GB of memory and one GB of disk of an awake sandbox. */
export const machineRates = z.strictObject({
  vcpuHourUsd: usdAnHour,
  memoryGbHourUsd: usdAnHour,
  diskGbHourUsd: usdAnHour,
});
export type MachineRates = z.infer<typeof machineRates>;

/** Approximate on-demand prices of public clouds. Configure the installation's real costs. */
export const DEFAULT_MACHINE_RATES: MachineRates = { vcpuHourUsd: 0.03, memoryGbHourUsd: 0.004, diskGbHourUsd: 0.0001 };
