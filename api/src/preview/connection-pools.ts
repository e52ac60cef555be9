// Connection pools by sandbox. A sandbox that was woken or moved runs in another VM: the pool of
// the former VM is retired.
import type { HostClients } from '../hosts/clients.ts';
import { ConnectionPool } from './connection-pool.ts';

/** The VM of a sandbox, as its row reports it. */
interface LocatedVm {
  sandboxId: string;
  orgId: string;
  epoch: number;
  hostUrl: string;
}

export class ConnectionPools {
  readonly #hosts: HostClients;
  readonly #limit: number;
  readonly #bySandbox = new Map<string, { epoch: number; hostUrl: string; pool: ConnectionPool }>();

  /** `limit`: maximum of open connections of each pool. */
  constructor(hosts: HostClients, limit: number) {
    this.#hosts = hosts;
    this.#limit = limit;
  }

  poolFor({ sandboxId, orgId, epoch, hostUrl }: LocatedVm): ConnectionPool {
    const known = this.#bySandbox.get(sandboxId);
    // Rows are cached for a second: one with a lower epoch describes the former VM.
    if (known !== undefined && (known.epoch > epoch || (known.epoch === epoch && known.hostUrl === hostUrl)))
      return known.pool;
    known?.pool.retire();
    const pool: ConnectionPool = new ConnectionPool({
      host: this.#hosts.at(hostUrl),
      vm: { vmId: sandboxId, orgId },
      limit: this.#limit,
      onEmpty: () => {
        if (this.#bySandbox.get(sandboxId)?.pool === pool) this.#bySandbox.delete(sandboxId);
      },
    });
    this.#bySandbox.set(sandboxId, { epoch, hostUrl, pool });
    return pool;
  }

  /** Closes all connections. */
  close(): void {
    for (const { pool } of this.#bySandbox.values()) pool.destroy();
  }
}
