// Ports of `berth forward`, as typed. Imports nothing: the help loads it.

/** Listeners of a command, and open connections of all of them. */
export const FORWARD_LIMITS = { ports: 64, connections: 128 } as const;

export interface ForwardedPort {
  /** 0: a free one. */
  local: number;
  remote: number;
}

const LARGEST = 65_535;

/** Returns the reason why the text is no port pair. */
export function readForwardedPort(typed: string): ForwardedPort | string {
  const [, local, remote = ''] = /^(?:(\d{0,5}):)?(\d{1,5})$/.exec(typed) ?? [];
  const port = { local: Number(local ?? remote), remote: Number(remote) };
  if (port.remote >= 1 && port.remote <= LARGEST && port.local <= LARGEST) return port;
  return `It must be LOCAL:REMOTE or REMOTE: whole numbers from 1 to ${LARGEST}, and 0 as LOCAL for a free port`;
}
