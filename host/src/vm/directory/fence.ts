// Epochs of destroyed VMs, so that a late create is refused. A small file per VM, bounded in age
// and number. The control plane gives up on a call within minutes; a fence is kept for a day.
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { vmId } from '@berth/protocol/host.ts';
import { z } from 'zod';
import { SerialQueue } from '@berth/os/serial-queue.ts';
import { makeFolderDurably, readIfPresent, writeDurably } from '@berth/os/durable-file.ts';

export const FENCE_KEPT_MS = 24 * 3_600_000;
const FENCES_KEPT = 5_000;

const fence = z.strictObject({ epoch: z.int().min(1), destroyedAtUnixMs: z.int() });
type Fence = z.infer<typeof fence>;

export class FenceDirectory {
  readonly #root: string;
  readonly #now: () => number;
  /** Oldest first. */
  readonly #fences = new Map<string, Fence>();
  /**
   * Serialises all changes of fences: expiring an old one must not remove the file of the same VM's
   * next one, and no older fence overwrites a newer one.
   */
  readonly #raiseQueue = new SerialQueue();

  /** @param root absolute path of `host/fences` */
  constructor(root: string, now: () => number = Date.now) {
    this.#root = root;
    this.#now = now;
  }

  /** Reads the fences of earlier daemons. Removes malformed files and returns their names. */
  async open(): Promise<string[]> {
    await makeFolderDurably(this.#root);
    const found: { id: string; fence: Fence }[] = [];
    const corrupt: string[] = [];
    for (const name of await readdir(this.#root)) {
      const id = name.replace(/\.json$/, '');
      const parsed = vmId.safeParse(id).success ? await readFence(join(this.#root, name)) : null;
      if (parsed === null) {
        // A leading dot marks a write interrupted by a crash.
        if (!name.startsWith('.')) corrupt.push(name);

        await rm(join(this.#root, name), { force: true });
      } else {
        found.push({ id, fence: parsed });
      }
    }
    found.sort((a, b) => a.fence.destroyedAtUnixMs - b.fence.destroyedAtUnixMs);
    for (const { id, fence } of found) this.#fences.set(id, fence);

    await this.#prune();
    return corrupt;
  }

  /** Newest epoch under which this VM was destroyed; null if unknown. */
  epochOf(id: string): number | null {
    return this.#fences.get(id)?.epoch ?? null;
  }

  /**
   * Records that the VM was destroyed under this epoch. Durable when it resolves; ignores an epoch
   * older than the known one.
   */
  async raise(id: string, epoch: number): Promise<void> {
    await this.#raiseQueue.run(() => this.#raise(id, epoch));
  }

  async #raise(id: string, epoch: number): Promise<void> {
    if (epoch <= (this.epochOf(id) ?? 0)) return;

    const raised = { epoch, destroyedAtUnixMs: this.#now() };
    await writeDurably(this.#path(id), JSON.stringify(raised));
    this.#fences.delete(id);
    this.#fences.set(id, raised);
    await this.#prune();
  }

  async #prune(): Promise<void> {
    const limit = this.#now() - FENCE_KEPT_MS;
    for (const [id, fence] of this.#fences) {
      if (this.#fences.size <= FENCES_KEPT && fence.destroyedAtUnixMs >= limit) return;

      this.#fences.delete(id);
      await rm(this.#path(id), { force: true });
    }
  }

  #path(id: string): string {
    return join(this.#root, `${id}.json`);
  }
}

async function readFence(path: string): Promise<Fence | null> {
  const text = await readIfPresent(path);
  try {
    return fence.parse(JSON.parse(text ?? ''));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return null;

    throw error;
  }
}
