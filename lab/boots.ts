// Boots of one lab machine: its disks keep their changes between them.
import { join } from 'node:path';
import { makeOverlay } from './disks/file-system.ts';
import type { LabFolder } from './disks/folder.ts';
import type { RootDisk } from './disks/root-disk.ts';
import { LabMachine } from './machine.ts';
import type { Order } from './order.ts';

export interface Bench {
  folder: LabFolder;
  root: RootDisk;
  /** Path of the work disk. */
  work: string;
  args: readonly string[];
  signal: AbortSignal;
}

export class Boots {
  readonly #bench: Bench;
  readonly #overlay: string;

  private constructor(bench: Bench, overlay: string) {
    this.#bench = bench;
    this.#overlay = overlay;
  }

  static async of(bench: Bench): Promise<Boots> {
    const overlay = join(bench.folder.run, 'root.qcow2');
    await makeOverlay(overlay, bench.root.disk, bench.signal);
    return new Boots(bench, overlay);
  }

  /** Boots with the order; the machine is off when this resolves. */
  async run<T>(
    order: Order,
    use: (machine: LabMachine) => Promise<T>,
    onLine: (line: string) => void = (line) => console.log(line),
  ): Promise<T> {
    const { folder, root, work, signal } = this.#bench;
    console.log('• starting the machine (about a minute)');
    const machine = await LabMachine.start({
      ...{ root, overlay: this.#overlay, work, folder: folder.run, signal },
      ...{ order, onLine },
    });
    try {
      return await use(machine);
    } finally {
      await machine.cut();
    }
  }
}
