// Boots a VM until its guest daemon responds: the template's single boot, and a VM's disk when
// there is no usable snapshot.
import { health } from '@berth/protocol/calls/identity.ts';
import { setTimeout as delay } from 'node:timers/promises';
import { GuestRefusal, type Guests } from '../../../guest/client.ts';
import { assertSpoken } from '../../../guest/protocol-version.ts';
import { SilentBoot, DriverError, type GuestEndpoint } from '../../driver.ts';
import type { RestoreBase } from '../template/bases.ts';
import { Console } from '../process/console.ts';
import { plugCpus } from '../machine/hotplug.ts';
import { TEMPLATE_SIZE, VCPU_MAX } from '../../machine-size.ts';
import { bootsWithAllCpus, type Accelerator } from '../machine/machine.ts';
import { endpointsOf } from './running-vms.ts';
import type { QmpSession } from '../machine/qmp.ts';
import { startQemu, type RunningQemu, type StartOrder } from './start.ts';

/** Time until the guest daemon's first response, on a busy host. */
export const BOOT_DEADLINE_MS = { kvm: 60_000, tcg: 300_000 } as const;

const REACH_STEP_MS = 2_000;
const REACH_PAUSE_MS = 20;
const CONSOLE_SHOWN = 1_000;

/**
 * Boots a VM's disk at the template's size; under TCG with all possible vCPUs. Rejects as {@link
 * startQemu}.
 */
export async function bootDisk(base: RestoreBase, order: StartOrder, guests: Guests): Promise<RunningQemu> {
  return startQemu(base, order, { kind: 'reboot' }, async ({ qmp, signal, elapsedMs, run }) => {
    const { accelerator } = base;
    const vcpuReadyMs = elapsedMs();
    await bootToGuest(
      {
        qmp,
        endpoint: endpointsOf(order.slot).guest,
        guests,
        accelerator,
        deadlineMs: BOOT_DEADLINE_MS[accelerator],
        run,
      },
      signal,
    );
    return { vcpuReadyMs };
  });
}

/** A VM whose vCPUs are paused before the firmware's first instruction. */
interface BootingVm {
  qmp: QmpSession;
  endpoint: GuestEndpoint;
  guests: Guests;
  accelerator: Accelerator;
  deadlineMs: number;
  /** Resumes the vCPUs. */
  run: () => Promise<void>;
}

/**
 * Runs the VM, with all possible vCPUs where required, and resolves when its guest daemon responds.
 * Rejects with {@link SilentBoot} if it does not, and with {@link DriverError}.
 */
export async function bootToGuest(machine: BootingVm, signal: AbortSignal): Promise<void> {
  await plugCpus(machine.qmp, bootsWithAllCpus(machine.accelerator) ? VCPU_MAX - TEMPLATE_SIZE.vcpu : 0, signal);
  await machine.run();
  await untilGuestAnswers(machine, signal);
}

async function untilGuestAnswers({ endpoint, guests, qmp, deadlineMs }: BootingVm, signal: AbortSignal): Promise<void> {
  const either = AbortSignal.any([signal, AbortSignal.timeout(deadlineMs)]);
  const client = guests.clientOf(endpoint);
  let seen: unknown = null;
  try {
    while (!either.aborted) {
      try {
        await client.reach({ signal: either, deadlineMs: REACH_STEP_MS });
        const { protocol } = await client.call(health, {}, { signal: either, deadlineMs: REACH_STEP_MS });
        assertSpoken(protocol, 'the guest daemon');
        return;
      } catch (error) {
        if (error instanceof DriverError) throw error;
        // Not listening yet, or too slow.
        seen = error;
        if (error instanceof GuestRefusal) break;

        await delay(REACH_PAUSE_MS, undefined, { signal: either }).catch(() => undefined);
      }
    }
  } finally {
    client.close();
  }
  signal.throwIfAborted();
  const last = seen instanceof GuestRefusal ? seen.message : `no response within ${deadlineMs / 1_000} s of the boot`;
  const console = new Console();
  await console.take(qmp, signal);
  const { content } = console;
  const shown = content?.text.slice(-CONSOLE_SHOWN).trim() || '(nothing)';
  throw new SilentBoot(`the guest daemon: ${last}; last console output: ${shown}`, content, { cause: seen });
}
