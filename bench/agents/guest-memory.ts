// Proportional memory of processes in a guest.
import type { Client } from '../world/client.ts';

/** Sum of all processes whose command line matches, as one program runs in several. */
export async function guestMemoryMib(client: Client, sandboxId: string, pattern: string): Promise<number> {
  const command = `for p in $(pgrep -f '${pattern}'); do sudo -n cat /proc/$p/smaps_rollup 2>/dev/null; done; true`;
  const { stdout } = (await client.call('POST', `/v1/sandboxes/${sandboxId}/exec`, { command })) as { stdout: string };
  const kib = [...stdout.matchAll(/^Pss:\s+(\d+) kB/gm)].map(([, text]) => Number(text));
  if (kib.length === 0) throw new Error(`no process matches ${pattern}`);
  return kib.reduce((sum, one) => sum + one, 0) / 1_024;
}

/** Pattern of the bridge of a session: its configuration is its second argument. The brackets keep
 * the shell that runs pgrep out. */
export const bridgePattern = (sessionId: string): string => `"[s]essionId":"${sessionId}"`;
