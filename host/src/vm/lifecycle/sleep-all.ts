// Puts every VM of a host to sleep before the host stops. The control plane wakes those whose
// sandbox is awake when the host returns.
import type { Logger } from 'pino';
import { eachOf } from '@berth/os/each-of.ts';
import type { VmLifecycle } from './lifecycle.ts';

/** Limit of concurrent sleeps: each writes memory to the disk. */
const AT_ONCE = 4;

/** Keeps the epochs: nobody requested these sleeps. Logs a VM that cannot sleep; it runs on. */
export async function sleepAll(lifecycle: Pick<VmLifecycle, 'list' | 'sleep'>, log: Logger): Promise<void> {
  const awake = lifecycle.list().filter(({ status }) => status !== 'asleep' && status !== 'dead');
  await eachOf(awake, AT_ONCE, async ({ id, epoch }) => {
    await lifecycle.sleep(id, { epoch }).catch((error: unknown) => {
      log.error({ vmId: id, err: error }, 'could not put a VM to sleep before the host stops');
    });
  });
}
