// Exercises a template's guest daemon before the freeze: everything that a restored one does first,
// often enough to compile its code and load its pages. Leaves no secret and no connection behind.
import { randomBytes } from 'node:crypto';
import { exec } from '@berth/protocol/calls/exec.ts';
import { health, template } from '@berth/protocol/calls/identity.ts';
import { guestMetricsCall } from '@berth/protocol/calls/metrics.ts';
import type { VmSpec } from '@berth/protocol/host.ts';
import { DirectGuestClient, type GuestClient } from '../../../../guest/client.ts';
import { sendIdentity, sendSize, sendWake, makeGuestSecret, makeIdentity } from '../../../../guest/identity.ts';
import { DriverError, type GuestEndpoint } from '../../../driver.ts';
import { ClockFault, clockFault, tscKhzIn, type ClockReading } from '../../start/guest-clock.ts';
import { TEMPLATE_SIZE } from '../../../machine-size.ts';
import { kernelSecretsIn, SECRETS_COMMAND, type KernelSecret } from '../kernel-secrets.ts';

/** Repetitions: the guest's JavaScript engine compiles functions after some tens of calls. */
const ROUNDS = 40;
const CALL_DEADLINE_MS = 60_000;

/**
 * Commands whose pages and code every VM should have in memory; the first is the shortest possible.
 */
const COMMANDS = [
  'true',
  'uname -a; id; nproc; free -m',
  'echo hello >/tmp/rehearsal && cat /tmp/rehearsal && rm /tmp/rehearsal',
] as const;

/** Measurements taken during the rehearsal. */
export interface Rehearsed {
  /** Rate of the kernel's time stamp counter; null if it was not reported. */
  tscKhz: number | null;
  kernelSecrets: KernelSecret[];
}

/**
 * Rehearses identity, commands and wakes, and leaves the VM fit for a template: without a secret,
 * the daemon's pools full, and no dirty pages, which every restored VM would write again.
 */
export async function rehearse(
  endpoint: GuestEndpoint,
  signal: AbortSignal,
  report: (message: string) => void,
): Promise<Rehearsed> {
  const before = await readClock(endpoint, signal);
  for (let round = 0; round < ROUNDS; round += 1) {
    if (round % 10 === 0) report(`rehearsing identity, commands and wakes, round ${round + 1} of ${ROUNDS}`);

    // A new connection each time, as in a restored VM.
    const client = new DirectGuestClient(endpoint);
    try {
      await rehearseOnce(client, round, signal);
    } finally {
      client.close();
    }
  }
  const client = new DirectGuestClient(endpoint);
  try {
    const tscKhz = tscKhzIn(await runCommand(client, 'sudo dmesg', signal));
    const kernelSecrets = kernelSecretsIn(await runCommand(client, SECRETS_COMMAND, signal));
    const after = await readClock(endpoint, signal);
    const fault = clockFault(before, after);
    if (fault !== null) throw new ClockFault(fault);

    await runCommand(client, 'sync', signal);
    // Waits until the pools used by the commands are full again.
    await client.call(health, {}, { signal });
    return { tscKhz, kernelSecrets };
  } finally {
    client.close();
  }
}

async function readClock(endpoint: GuestEndpoint, signal: AbortSignal): Promise<ClockReading> {
  const client = new DirectGuestClient(endpoint);
  try {
    await client.call(health, {}, { signal });
    const sentMs = performance.now();
    const { uptimeSeconds } = await client.call(guestMetricsCall, {}, { signal, deadlineMs: CALL_DEADLINE_MS });
    return { sentMs, answeredMs: performance.now(), uptimeMs: uptimeSeconds * 1_000 };
  } finally {
    client.close();
  }
}

async function rehearseOnce(client: GuestClient, round: number, signal: AbortSignal): Promise<void> {
  const spec: VmSpec = {
    ...TEMPLATE_SIZE,
    hostname: `template-${randomBytes(4).toString('hex')}`,
    sshAuthorizedKeys: [],
  };
  const [first, second] = [makeGuestSecret(), makeGuestSecret()];
  await sendIdentity(client, makeIdentity(spec, first), signal, CALL_DEADLINE_MS);
  await runCommand(client, COMMANDS[0], signal);
  await sendWake(client, { fresh: second, former: [first] }, TEMPLATE_SIZE, signal, CALL_DEADLINE_MS);
  await sendSize(client, TEMPLATE_SIZE, { signal, deadlineMs: CALL_DEADLINE_MS });
  await runCommand(client, COMMANDS[round % COMMANDS.length] as string, signal);
  await client.call(guestMetricsCall, {}, { signal, deadlineMs: CALL_DEADLINE_MS });
  await client.call(template, {}, { signal });
}

async function runCommand(client: GuestClient, command: string, signal: AbortSignal): Promise<string> {
  const { exitCode, stdout, stderr } = await client.call(exec, { body: { command, timeoutSeconds: 60 } }, { signal });
  if (exitCode !== 0)
    throw new DriverError(`"${command}" exited with ${exitCode} in the template: ${stderr.slice(-500)}`);

  return stdout;
}
