// File on the guest's disk that marks the disk as having an identity. A daemon that finds it at
// boot must not rehearse, which would replace the guest's names and keys.
import { closeSync, fsync, mkdirSync, openSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

export class IdentityMarker {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  get there(): boolean {
    return statSync(this.#path, { throwIfNoEntry: false }) !== undefined;
  }

  /**
   * Creates the marker and flushes it to the disk, with every file of the identity: the flush
   * writes the file system's journal, which holds the replaced files first. Does not wait: a flush
   * takes as long as the rest of an identity, and the journal is written within seconds anyway.
   */
  put(): void {
    if (this.there) return;

    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o755 });
    const file = openSync(this.#path, 'w', 0o600);
    fsync(file, (error) => {
      closeSync(file);
      if (error !== null) console.error(`${this.#path} was not written to the disk:`, error);
    });
  }

  /** Marks the disk as having no identity. */
  remove(): void {
    rmSync(this.#path, { force: true });
  }
}
