// A log file of bounded size: it is renamed when it is full, and the oldest of its predecessors
// goes.
import { closeSync, existsSync, fstatSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';

const DEFAULTS = { maxBytes: 8 * 1024 * 1024, keptFiles: 4 };

export class LogFile {
  readonly path: string;
  readonly #maxBytes: number;
  readonly #keptFiles: number;
  #file: number;
  #bytes: number;
  /** Not written for want of room, since the last line that was. */
  #lostBytes = 0;

  /**
   * Opens or makes the file. At most `keptFiles` full ones stay beside it (`path.1` is the newest).
   */
  constructor(path: string, options: { maxBytes?: number; keptFiles?: number } = {}) {
    this.path = path;
    this.#maxBytes = options.maxBytes ?? DEFAULTS.maxBytes;
    this.#keptFiles = options.keptFiles ?? DEFAULTS.keptFiles;
    this.#file = openSync(path, 'a', 0o600);
    this.#bytes = fstatSync(this.#file).size;
  }

  /**
   * Written before it returns: what a service said last is there when it is asked why it ended. A
   * disk without room loses lines and nothing else: who writes here keeps the services running. How
   * much was lost is said as soon as there is room.
   */
  write(chunk: Buffer): void {
    const note =
      this.#lostBytes === 0 ? '' : `(${this.#lostBytes} bytes of this log are lost: there was no room on the disk)\n`;
    try {
      this.#append(note === '' ? chunk : Buffer.concat([Buffer.from(note), chunk]));
      this.#lostBytes = 0;
    } catch (error) {
      if (!['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;

      this.#lostBytes += chunk.length;
    }
  }

  #append(chunk: Buffer): void {
    if (this.#bytes > 0 && this.#bytes + chunk.length > this.#maxBytes) this.#rotate();

    let offset = 0;
    while (offset < chunk.length) {
      const written = writeSync(this.#file, chunk, offset);
      offset += written;
      this.#bytes += written;
    }
  }

  close(): void {
    closeSync(this.#file);
  }

  #rotate(): void {
    closeSync(this.#file);
    rmSync(`${this.path}.${this.#keptFiles}`, { force: true });
    for (let number = this.#keptFiles - 1; number >= 1; number -= 1)
      if (existsSync(`${this.path}.${number}`)) renameSync(`${this.path}.${number}`, `${this.path}.${number + 1}`);

    renameSync(this.path, `${this.path}.1`);
    this.#file = openSync(this.path, 'a', 0o600);
    this.#bytes = 0;
  }
}
