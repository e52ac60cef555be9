// Retries a boot after transient faults: a guest with a miscalibrated clock on a busy host, and a
// crashed QEMU. QEMU before 10.0.4 has a use-after-free while a VM with several emulated vCPUs sets
// up its devices (gitlab.com/qemu-project/qemu/-/issues/3040); about one boot in several hundred
// crashes.
import { isFault } from '../process/death.ts';
import { ClockFault } from './guest-clock.ts';
import { QemuEnded } from '../process/launch.ts';

const BOOTS_MAX = 3;

/**
 * Returns the result of `boot`; a failed attempt leaves nothing behind. `tell` receives the reason
 * of each retry. Rejects as the last attempt did.
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
