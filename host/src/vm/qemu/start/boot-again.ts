// Boots again after what passes: a guest that took its clock wrong, on a machine that has other
// things to do, and a QEMU that fell over. QEMU before 10.0.4 reads memory that it has given back
// when a machine of several emulated vCPUs sets up its devices
// (gitlab.com/qemu-project/qemu/-/issues/3040); one boot in some hundreds ends so.
import { isFault } from '../process/death.ts';
import { ClockFault } from './guest-clock.ts';
import { QemuEnded } from '../process/launch.ts';

const BOOTS_MAX = 3;

/**
 * Resolves with what `boot` does; one that failed leaves nothing that the next could meet. `tell`
 * hears why there is another. Rejects as the last one did.
 */
export async function bootAgain<T>(boot: () => Promise<T>, tell: (why: string) => void): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await boot();
    } catch (error) {
      const passes = error instanceof ClockFault || (error instanceof QemuEnded && isFault(error.exitCode));
      if (!passes || attempt >= BOOTS_MAX) throw error;

      tell(error.message);
    }
  }
}
