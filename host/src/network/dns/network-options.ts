// What a host daemon says about its network when it makes one (see `network.ts`). Holds no state.

export interface NetworkOptions {
  /** The instance's id: 8 characters a-z2-7. */
  instanceId: string;
  /**
   * The instance's data folder: written beside each slot, so that a doctor can tell whose slots
   * nobody will ever free.
   */
  dataFolder: string;
  /** BERTH_GUEST_CIDR. */
  cidr: string;
  /**
   * The machine's registry of slots; default /run/berth/slots. Instances that share a machine must
   * share it.
   */
  registryFolder?: string;
  /** Idle slots kept ready; default 8. */
  idleSlots?: number;
  /**
   * Where the guests' DNS questions go; default: the name servers of /etc/resolv.conf, read again
   * when it changes.
   */
  upstreams?: UpstreamSource;
  /** Told of what happens in the background and nobody waits for. */
  log?: (event: NetworkLogEvent) => void;
}

/** Fixed name servers, or a file in resolv.conf's format. */
export type UpstreamSource = { servers: readonly NameServer[] } | { file: string };

export interface NameServer {
  address: string;
  port: number;
}

export interface NetworkLogEvent {
  level: 'info' | 'warn';
  message: string;
  error?: unknown;
}
