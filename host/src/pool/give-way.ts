// Chooses the waiting VMs that a caller without memory takes the place of.
import { boundedMessageOf } from '../vm/host-error.ts';
import type { PoolVm, PoolVmParts } from './pool-vm.ts';
import { WAITING_VM_MIB } from './target.ts';

/**
 * The fewest VMs whose end frees `missingMib` beyond {@link WAITING_VM_MIB} each, which the host
 * already counts as available; empty if all of them free less.
 */
export async function vmsToEnd(
  { driver, directory, log }: Pick<PoolVmParts, 'driver' | 'directory' | 'log'>,
  waiting: readonly PoolVm[],
  missingMib: number,
): Promise<PoolVm[]> {
  const measured = await Promise.all(
    waiting.map(async (vm) => {
      try {
        const { unsharedMib } = await driver.figures(directory.driverFolder(vm.id), vm.driverState);
        return { vm, freesMib: unsharedMib - WAITING_VM_MIB };
      } catch (error) {
        log.warn({ machineId: vm.id, err: error }, `cannot measure a VM of the pool: ${boundedMessageOf(error)}`);
        return { vm, freesMib: 0 };
      }
    }),
  );
  const chosen: PoolVm[] = [];
  let freedMib = 0;
  for (const { vm, freesMib } of measured.sort((a, b) => b.freesMib - a.freesMib)) {
    if (freedMib >= missingMib || freesMib <= 0) break;
    chosen.push(vm);
    freedMib += freesMib;
  }
  return freedMib >= missingMib ? chosen : [];
}
