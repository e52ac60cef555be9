// Rule for hosts without KVM: QEMU treats only hardware virtualization as a security boundary, so a
// service that strangers can reach needs the operator's consent to emulation (TCG).
import type { Probe } from '@berth/host/template.ts';
import { isLoopback } from '@berth/os/loopback.ts';
import { OperatorFailure } from '../../output/failure.ts';

/** The operator's consent. Any value but 1 is none. */
const ALLOW_EMULATION = 'BERTH_ALLOW_EMULATION';

export const EMULATION_RISK =
  'sandboxes are emulated, which QEMU does not treat as a security boundary; commands are 10 to 20 times slower';

const REMEDY = `use a host with KVM, or set ${ALLOW_EMULATION}=1 if all users of the sandboxes are trusted`;

/** Fault and remedy of a service with these URLs; null if it may run. */
export function emulationFault(
  accelerator: Probe['accelerator'],
  urls: readonly string[],
  environment: Readonly<NodeJS.ProcessEnv>,
): { message: string; remedy: string } | null {
  const beyond = urls.find((url) => !isLoopback(new URL(url).hostname));
  if (accelerator === 'kvm' || beyond === undefined || environment[ALLOW_EMULATION] === '1') return null;

  return { message: `cannot serve ${beyond}: ${EMULATION_RISK}`, remedy: REMEDY };
}

/** @throws OperatorFailure if {@link emulationFault} finds one */
export function requireIsolation(...service: Parameters<typeof emulationFault>): void {
  const found = emulationFault(...service);
  if (found !== null) throw new OperatorFailure(found.message, { remedy: found.remedy });
}
