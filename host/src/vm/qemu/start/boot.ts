// Boots a machine up to the first answer of its guest daemon: the template's one boot, and a VM's
// disk when there is no snapshot to wake it from.
import { setTimeout as delay } from 'node:timers/promises';
import { GuestClient, GuestRefusal } from '../../../guest/client.ts';
import { DriverError, type GuestEndpoint } from '../../driver.ts';
import type { RestoreBase } from '../template/bases.ts';
import { readConsole } from '../process/console.ts';
import { plugCpus } from '../machine/hotplug.ts';
import { TEMPLATE_SIZE, VCPU_MAX } from '../../machine-size.ts';
import { bootsWithAllCpus, type Accelerator } from '../machine/machine.ts';
import { endpointOf } from './machines.ts';
import type { QmpSession } from '../machine/qmp.ts';
import { startMachine, type RunningMachine, type StartOrder } from './start.ts';

/** Up to the guest daemon's first answer, on a machine that has other things to do. */
export const BOOT_DEADLINE_MS = { kvm: 60_000, tcg: 300_000 } as const;

const REACH_STEP_MS = 2_000;
const REACH_PAUSE_MS = 20;
const CONSOLE_SHOWN = 1_000;

/**
 * Boots the disk of a VM, at the template's size; under TCG with every vCPU there may be. Rejects
 * as {@link startMachine}.
 */
export async function bootDisk(base: RestoreBase, order: StartOrder): Promise<RunningMachine> {
  return startMachine(base, order, { kind: 'reboot' }, async ({ qmp, signal, elapsedMs, run }) => {
    const { accelerator } = base;
    const vcpuReadyMs = elapsedMs();
    await bootToGuest(
      { qmp, endpoint: endpointOf(order.slot), accelerator, deadlineMs: BOOT_DEADLINE_MS[accelerator], run },
      signal,
    );
    return { vcpuReadyMs };
  });
}

/** A machine whose vCPUs stand still before the firmware's first step. */
export interface BootingMachine {
  qmp: QmpSession;
  endpoint: GuestEndpoint;
  accelerator: Accelerator;
  deadlineMs: number;
  /** Lets the vCPUs run. */
  run: () => Promise<void>;
}

/**
 * Runs it, with every vCPU it may ever have where that is needed, and resolves when its guest
 * daemon answers. Rejects with {@link DriverError} that shows the console.
 */
export async function bootToGuest(machine: BootingMachine, signal: AbortSignal): Promise<void> {
  await plugCpus(machine.qmp, bootsWithAllCpus(machine.accelerator) ? VCPU_MAX - TEMPLATE_SIZE.vcpu : 0, signal);
  await machine.run();
  await untilGuestAnswers(machine, signal);
}

async function untilGuestAnswers({ endpoint, qmp, deadlineMs }: BootingMachine, signal: AbortSignal): Promise<void> {
  const either = AbortSignal.any([signal, AbortSignal.timeout(deadlineMs)]);
  const client = new GuestClient(endpoint);
  let seen: unknown = null;
  try {
    while (!either.aborted) {
      try {
        await client.reach({ signal: either, deadlineMs: REACH_STEP_MS });
        await client.health({ signal: either, deadlineMs: REACH_STEP_MS });
        return;
      } catch (error) {
        // Nobody listens yet, or too slowly.
        seen = error;
        if (error instanceof GuestRefusal) break;

        await delay(REACH_PAUSE_MS, undefined, { signal: either }).catch(() => undefined);
      }
    }
  } finally {
    client.close();
  }
  signal.throwIfAborted();
  const last =
    seen instanceof GuestRefusal ? seen.message : `it did not answer within ${deadlineMs / 1_000} s of the boot`;
  const shown = (await readConsole(qmp, signal)).slice(-CONSOLE_SHOWN).trim() || '(nothing)';
  throw new DriverError(`the guest daemon: ${last}; the console's end: ${shown}`, { cause: seen });
}
