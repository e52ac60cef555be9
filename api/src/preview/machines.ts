// The machines that previews have connections into, by sandbox. One that was put to sleep and
// woken, or moved, is another machine: nothing of the former's is used again.
import type { HostClients } from '../hosts/clients.ts';
import { MachineConnections } from './connections.ts';

export interface Machine {
  sandboxId: string;
  epoch: number;
  hostUrl: string;
}

export class Machines {
  readonly #hosts: HostClients;
  readonly #most: number;
  readonly #bySandbox = new Map<string, { epoch: number; hostUrl: string; connections: MachineConnections }>();

  constructor(hosts: HostClients, mostConnections: number) {
    this.#hosts = hosts;
    this.#most = mostConnections;
  }

  connectionsOf({ sandboxId, epoch, hostUrl }: Machine): MachineConnections {
    const known = this.#bySandbox.get(sandboxId);
    // A row that was read a second ago may be of the machine before.
    if (known !== undefined && (known.epoch > epoch || (known.epoch === epoch && known.hostUrl === hostUrl)))
      return known.connections;
    known?.connections.retire();
    const connections: MachineConnections = new MachineConnections({
      open: (port) => this.#hosts.at(hostUrl).openPort(sandboxId, port),
      most: this.#most,
      onUnused: () => {
        if (this.#bySandbox.get(sandboxId)?.connections === connections) this.#bySandbox.delete(sandboxId);
      },
    });
    this.#bySandbox.set(sandboxId, { epoch, hostUrl, connections });
    return connections;
  }

  /** Closes all connections. */
  close(): void {
    for (const { connections } of this.#bySandbox.values()) connections.destroy();
  }
}
