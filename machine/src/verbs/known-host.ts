// `berth known-host`: the host key of a sandbox as a line of known_hosts, for ssh's KnownHostsCommand. The key is the one that the API has on record.
import { getSshAccess } from '@berth/contract/ssh.ts';
import { askOfSandbox, readApiAccess } from '../api-access.ts';
import type { VerbContext } from './context.ts';

export async function knownHost(context: VerbContext, sandboxId: string): Promise<number> {
  const { ssh } = await askOfSandbox(readApiAccess(context), getSshAccess, sandboxId, context.signal);
  context.print(knownHostsLine(sandboxId, ssh.hostKey));
  return 0;
}

export function knownHostsLine(sandboxId: string, hostKey: string): string {
  return `${sandboxId} ${hostKey}`;
}
