// What machine time costs whoever runs the installation, for estimates. Configuration, beside the
// plans (BERTH_PLANS_FILE).
import { z } from 'zod';

const usdAnHour = z.number().nonnegative().max(10_000);

/**
 * US dollars for one hour of one vCPU, of one GB of memory, of one GB of disk, each while its
 * machine is awake.
 */
export const machineRates = z.strictObject({
  vcpuHourUsd: usdAnHour,
  memoryGbHourUsd: usdAnHour,
  diskGbHourUsd: usdAnHour,
});
export type MachineRates = z.infer<typeof machineRates>;

/** About what machines of public clouds cost on demand: to be replaced by what one's own cost. */
export const DEFAULT_MACHINE_RATES: MachineRates = { vcpuHourUsd: 0.03, memoryGbHourUsd: 0.004, diskGbHourUsd: 0.0001 };
