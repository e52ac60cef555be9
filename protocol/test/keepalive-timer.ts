// Keepalive timer of a TCP connection over IPv4 loopback, as the kernel lists it.
import { readFile } from 'node:fs/promises';

const KEEPALIVE_TIMER = '02';
const TICKS_PER_SECOND = 100;
/** Time for the server to accept the connection. */
const DEADLINE_MS = 10_000;

/** Seconds until the server's end probes an idle caller. Throws if it never does. */
export async function secondsToProbe(serverPort: number, callerPort: number): Promise<number> {
  const hex = (port: number): string => `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const deadline = performance.now() + DEADLINE_MS;
  while (performance.now() < deadline) {
    const rows = (await readFile('/proc/net/tcp', 'utf8')).split('\n').map((line) => line.trim().split(/\s+/));
    const row = rows.find(([, local, remote]) => local?.endsWith(hex(serverPort)) && remote?.endsWith(hex(callerPort)));
    const [timer, ticks = ''] = row?.[5]?.split(':') ?? [];
    if (timer === KEEPALIVE_TIMER) return Number.parseInt(ticks, 16) / TICKS_PER_SECOND;
  }
  throw new Error(`port ${serverPort} does not probe port ${callerPort}`);
}
