// Checks that a port is free, and finds its owner otherwise.
import { createServer } from 'node:net';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { nullOn } from '@berth/os/errors.ts';
import { OperatorFailure } from '../output/failure.ts';

/**
 * Throws an {@link OperatorFailure} that names the port, its owner and the flag for another port.
 */
export async function requireFreePort(listen: string, port: number): Promise<void> {
  const code = await tryToListen(listen, port);
  if (code === null) return;

  if (code === 'EADDRINUSE') {
    const owner = portOwner(port);
    throw new OperatorFailure(`port ${port} on ${listen} is taken${owner === null ? '' : ` by ${owner}`}`, {
      remedy: 'choose another with --port (BERTH_PORT), or stop the program that uses it',
    });
  }
  if (code === 'EADDRNOTAVAIL') {
    throw new OperatorFailure(`${listen} is not an address of this host`, {
      remedy: 'choose one with --listen (BERTH_LISTEN)',
    });
  }

  throw new OperatorFailure(`cannot listen on port ${port} of ${listen}: ${code}`, {
    remedy: 'choose others with --listen and --port',
  });
}

/** The process exited meanwhile, or is not visible to this user. */
const GONE = ['ENOENT', 'ESRCH', 'EACCES', 'EPERM'] as const;

/** A port of this address that was free at the time of the call. */
export async function findFreePort(listen: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host: listen, port: 0 }, () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

/** 'pid 123 (nginx -g ...)', or null if unknown. */
function portOwner(port: number): string | null {
  const inodes = new Set(['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) => listeningInodes(file, port)));
  if (inodes.size === 0) return null;

  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    if (socketInodes(pid).some((inode) => inodes.has(inode))) {
      const command = readIfThere(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();
      return `pid ${pid} (${command.slice(0, 80)})`;
    }
  }
  return null;
}

function tryToListen(listen: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host: listen, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
}

/**
 * Parses /proc/net/tcp: number, local address:port in hex, remote, state (0A listens), ..., inode
 * as the tenth field.
 */
function listeningInodes(file: string, port: number): string[] {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  return readIfThere(file)
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[1]?.endsWith(`:${wanted}`) === true && fields[3] === '0A')
    .map((fields) => fields[9] ?? '');
}

function socketInodes(pid: string): string[] {
  const links = nullOn(GONE, () =>
    readdirSync(`/proc/${pid}/fd`).flatMap(
      (fd) => /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [],
    ),
  );
  return links ?? [];
}

function readIfThere(path: string): string {
  return nullOn(GONE, () => readFileSync(path, 'utf8')) ?? '';
}
