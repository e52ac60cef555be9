// `berth known-host`: prints the host key stored in the API as a known_hosts line.
import type { CliContext } from '../program/context.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import type { Input } from '../program/command-spec.ts';

export async function knownHost(context: CliContext, { args: [typed = ''] }: Input): Promise<void> {
  const { connect, out, signal } = context;
  const id = await findSandbox(context, typed);
  const { berth } = await connect();
  const { ssh } = await berth.raw.getSshAccess({ path: { sandboxId: id }, signal });
  // ssh looks for the host as it was typed. Other names could have a second meaning in the line.
  out.line(knownHostsLine(/^[\w.-]+$/.test(typed) ? typed : id, ssh.hostKey));
}

export function knownHostsLine(host: string, hostKey: string): string {
  return `${host} ${hostKey}`;
}
