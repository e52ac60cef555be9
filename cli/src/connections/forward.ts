// `berth forward`: listens on local ports, with a tunnel into the sandbox for each connection.
import { once } from 'node:events';
import { createServer, isIP, type AddressInfo, type Server } from 'node:net';
import { exitCodeOf } from '../interaction/repeat.ts';
import { CliFailure, UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import type { Input } from '../program/command-spec.ts';
import type { CliContext } from '../program/context.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import { FORWARD_LIMITS, readForwardedPort, type ForwardedPort } from './forward-ports.ts';
import { Forwarder } from './forwarder.ts';

/** Resolves with the exit code of the signal that ends it. */
export async function forward(
  context: CliContext,
  { args: [typed, ...typedPorts], options: { address } }: Input<{ address: string }>,
): Promise<number> {
  const { connect, out, signal } = context;
  const ports = portsOf(typedPorts);
  const host = addressOf(address);
  const id = await findSandbox(context, typed);
  const servers: { server: Server; port: ForwardedPort }[] = [];
  const forwarder = new Forwarder(connect, id, out);
  try {
    for (const port of ports) {
      const server = await listen(host, port.local);
      servers.push({ server, port });
      forwarder.serve(server, port.remote);
    }
    const { berth } = await connect();
    const sandbox = await berth.sandboxes.get(id, { signal });
    for (const { server, port } of servers) {
      const local = (server.address() as AddressInfo).port;
      if (out.json) out.objectLine({ address: host, localPort: local, port: port.remote });
      else out.line(`Forwarding ${shown(host, local)} to port ${port.remote} of ${id}`);
    }
    if (!isLoopback(host))
      out.note(`berth: warning: anyone who reaches ${host} can use these ports of the sandbox, without signing in`);
    if (sandbox.status !== 'running' && sandbox.status !== 'ready') {
      out.hint(
        `berth: the sandbox is ${sandbox.status}: connections need berth sandbox wake ${id}, ` +
          'unless its project has wakeOnUse',
      );
    }
    if (!signal.aborted) await once(signal, 'abort');
    return exitCodeOf(signal);
  } finally {
    for (const { server } of servers) server.close();
    forwarder.close();
  }
}

function portsOf(typed: readonly string[]): ForwardedPort[] {
  if (typed.length > FORWARD_LIMITS.ports)
    throw new UsageError(`${typed.length} ports were given: at most ${FORWARD_LIMITS.ports} can be forwarded at once`);
  const ports: ForwardedPort[] = [];
  for (const text of typed) {
    const port = readForwardedPort(text);
    if (typeof port === 'string') throw new UsageError(`invalid port '${plainText(text)}'. ${port}`);
    if (port.local !== 0 && ports.some(({ local }) => local === port.local))
      throw new UsageError(`the local port ${port.local} was given twice`);
    ports.push(port);
  }
  return ports;
}

function addressOf(typed: string): string {
  const address = typed === 'localhost' ? '127.0.0.1' : typed;
  if (isIP(address) !== 0) return address;
  throw new UsageError(
    `--address '${plainText(typed)}' is invalid: expected an IP address such as 127.0.0.1, or localhost`,
  );
}

function shown(host: string, port: number): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.');
}

async function listen(host: string, port: number): Promise<Server> {
  // A paused connection has not lost its first bytes when its tunnel is open.
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true });
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port }, resolve);
    });
    return server;
  } catch (error) {
    throw listenFailure(error as NodeJS.ErrnoException, host, port);
  }
}

function listenFailure(error: NodeJS.ErrnoException, host: string, port: number): CliFailure {
  const [reason, remedy] =
    error.code === 'EADDRINUSE'
      ? [
          'the port is in use',
          'stop the program that uses it, or forward another local port: 0:REMOTE takes a free one',
        ]
      : error.code === 'EACCES'
        ? ['this user may not use the port', 'choose a local port above 1023']
        : error.code === 'EADDRNOTAVAIL'
          ? ['this computer does not have the address', 'choose another --address']
          : [error.message, undefined];
  return new CliFailure(`cannot listen on ${shown(host, port)}: ${reason}`, {
    cause: error,
    ...(remedy === undefined ? {} : { remedy }),
  });
}
