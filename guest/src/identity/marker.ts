// A file on the machine's own disk that says: this disk has an identity. A daemon that finds it
// after a boot must not rehearse another, which would take away the names and keys that the machine
// has.
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
   * Puts the marker there and has it written to the disk, and with it every file of the identity:
   * flushing it writes the file system's journal, in which the replaced files come first. That is
   * not waited for: it takes as long as the rest of an identity, and the journal is written after
   * seconds anyhow.
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

  /** Back to a disk that is nobody's. */
  remove(): void {
    rmSync(this.#path, { force: true });
  }
}
