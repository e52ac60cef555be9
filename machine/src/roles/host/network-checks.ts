// Checks of the host's network: rights, addresses, other firewalls. Read-only.
import { checkGuestCidr, checkNetworkRights, checkOtherFirewalls } from '@berth/host/network/preflight.ts';
import type { NetworkFault } from '@berth/host/network/preflight.ts';
import type { Config } from '../../config/config.ts';
import { fault, ok, warn } from '../../doctor/check.ts';
import type { Check, Finding } from '../../doctor/check.ts';

export function networkChecks(config: Config): Check[] {
  return [
    { subject: 'network', run: () => checkNetwork(config) },
    {
      subject: 'firewall',
      run: async () =>
        toFindings('firewall', await checkOtherFirewalls(), 'no chain of another program drops by default', 'warn'),
    },
  ];
}

async function checkNetwork(config: Config): Promise<Finding[]> {
  const rights = await checkNetworkRights(config.guestCidr);
  const addresses = rights.length > 0 ? [] : await checkGuestCidr(config.guestCidr);
  return toFindings(
    'network',
    [...rights, ...addresses],
    `slots can be created; ${config.guestCidr} is unused`,
    'fault',
  );
}

function toFindings(
  subject: string,
  faults: readonly NetworkFault[],
  detail: string,
  grade: 'warn' | 'fault',
): Finding[] {
  const made = grade === 'warn' ? warn : fault;
  return faults.length === 0
    ? [ok(subject, detail)]
    : faults.map((found) => made(subject, found.message, found.remedy));
}
