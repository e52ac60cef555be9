// A log file of bounded size: renamed when full; the oldest rotated file is removed.
import { closeSync, existsSync, fstatSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { hasCode } from './errors.ts';

const DEFAULTS = { maxBytes: 8 * 1024 * 1024, keptFiles: 4 };

export class LogFile {
  readonly path: string;
  readonly #maxBytes: number;
  readonly #keptFiles: number;
  #file: number;
  #bytes: number;
  /** Bytes lost to a full disk since the last written line. */
  #lostBytes = 0;

  /** Opens or makes the file. Keeps at most `keptFiles` rotated ones (`path.1` is the newest). */
  constructor(path: string, options: { maxBytes?: number; keptFiles?: number } = {}) {
    this.path = path;
    this.#maxBytes = options.maxBytes ?? DEFAULTS.maxBytes;
    this.#keptFiles = options.keptFiles ?? DEFAULTS.keptFiles;
    this.#file = openSync(path, 'a', 0o600);
    this.#bytes = fstatSync(this.#file).size;
  }

  /**
   * Synchronous: a service's last output is in the file when its exit is diagnosed. A full disk
   * loses lines but does not throw, because the writer supervises services. The number of lost
   * bytes is logged once there is room.
   */
  write(chunk: Buffer): void {
    const note = this.#lostBytes === 0 ? '' : `(${this.#lostBytes} bytes of this log are lost: the disk was full)\n`;
    try {
      this.#append(note === '' ? chunk : Buffer.concat([Buffer.from(note), chunk]));
      this.#lostBytes = 0;
    } catch (error) {
      if (!hasCode(error, 'ENOSPC', 'EDQUOT')) throw error;

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
