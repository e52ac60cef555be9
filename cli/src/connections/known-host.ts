// `berth known-host`: prints the host key stored in the API as a known_hosts line.
import type { CliContext } from '../program/context.ts';
import { sandboxId } from '../service/resource-id.ts';
import type { Input } from '../program/command-spec.ts';

export async function knownHost({ connect, out, signal }: CliContext, { args: [typed] }: Input): Promise<void> {
  const id = sandboxId(typed);
  const { berth } = await connect();
  const { ssh } = await berth.raw.getSshAccess({ path: { sandboxId: id }, signal });
  out.line(knownHostsLine(id, ssh.hostKey));
}

export function knownHostsLine(host: string, hostKey: string): string {
  return `${host} ${hostKey}`;
}
