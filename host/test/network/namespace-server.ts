// Runs `test-server.ts` in a network namespace, like a program of that network.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface ServerOptions {
  /** Contained in every HTTP response, to identify the responder. */
  name: string;
  httpPorts: number[];
  udpPort: number;
  /** Address on which port 53 serves the zone of `dns-zone.ts`; null: none. */
  dnsAddress: string | null;
  ipv6: boolean;
}

export interface ServerCounts {
  /** Payloads received on the UDP port, as latin1. */
  datagrams: string[];
  /** IPv4 packets received in the namespace since its creation. */
  packetsReceived: number;
}

export interface NamespaceServer {
  counts(): Promise<ServerCounts>;
  stop(): Promise<void>;
}

/** Resolves when the server listens. `namespacePath` null: in the namespace of this process. */
export async function startServer(namespacePath: string | null, options: ServerOptions): Promise<NamespaceServer> {
  const program = [
    process.execPath,
    fileURLToPath(new URL('test-server.ts', import.meta.url)),
    JSON.stringify(options),
  ];
  const command = namespacePath === null ? program : ['nsenter', `--net=${namespacePath}`, ...program];
  const child = spawn(command[0] as string, command.slice(1), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const ended = once(child, 'exit');
  const ready = await Promise.race([once(child, 'message'), ended]);
  if (ready[0] !== 'ready') throw new Error(`The server "${options.name}" did not start: ${String(ready)}`);
  return {
    async counts() {
      child.send('counts');
      const [counts] = (await once(child, 'message', { signal: AbortSignal.timeout(10_000) })) as [ServerCounts];
      return counts;
    },
    async stop() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
