// Downloads a file by the file routes, and continues at its byte after a broken connection.
import { open, rename, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { BerthError, type Berth, type FileDownload, type FileStat, type SandboxFiles } from '@berth/sdk';
import { CliFailure } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import type { PathThere } from './endpoint.ts';
import { withStage } from './stage.ts';

/** Failures in a row without a byte in between. */
const FAILURES_IN_ROW = 6;
/** Limit for connections that break after a few bytes each, and for a file that keeps changing. */
const FAILURES = 100;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 8_000;

interface Source {
  files: SandboxFiles;
  stat: FileStat;
}

interface Options {
  /** The path with the sandbox, for messages. */
  what: string;
  note: (text: string) => void;
  /** Called with the bytes received so far. */
  passed: (bytes: number) => void;
  signal: AbortSignal;
}

/**
 * A file whose download can be resumed; null for everything else: folders, links, paths that the
 * file routes resolve in another way than a command, sandboxes of an earlier release, and callers
 * without the permission.
 */
export async function resumable(
  berth: Berth,
  { sandbox, path }: PathThere,
  signal: AbortSignal,
): Promise<Source | null> {
  if (/(?:^|\/)\.{0,2}$|(?:^|\/)\.\.\//.test(path)) return null;
  try {
    const stat = await berth.raw.statFile({ path: { sandboxId: sandbox }, query: { path }, signal });
    if (stat.kind !== 'file') return null;
    const { files } = await berth.sandboxes.get(sandbox, { signal });
    return { files, stat };
  } catch (error) {
    if (error instanceof BerthError) return null;
    throw error;
  }
}

/** Downloads into a private folder, then moves the file to the target as a whole. */
export async function downloadFile(
  { files, stat }: Source,
  to: { beside: string; target: string },
  options: Options,
): Promise<void> {
  const isMixed = await withStage(to.beside, async (stage) => {
    const part = join(stage, 'r');
    const file = await open(part, 'wx', 0o600);
    let hasChanged: boolean;
    try {
      const download = new Download(files, stat.path, file, options);
      await download.run();
      const { mode, modifiedAt } = await files.stat(stat.path, { signal: options.signal });
      hasChanged = await download.hasChanged();
      // Drops set-user-id and set-group-id.
      await file.chmod(Number.parseInt(mode, 8) & 0o777);
      const modified = modifiedAt === null ? new Date() : new Date(modifiedAt);
      await file.utimes(modified, modified);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(part, to.target);
    return hasChanged;
  });
  if (isMixed) {
    throw new CliFailure(
      `${plainText(options.what)} changed while it was copied: the copy may have parts of two versions`,
    );
  }
}

class Download {
  readonly #files: SandboxFiles;
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #options: Options;
  #at = 0;
  #size: number | undefined;
  #etag: string | undefined;
  #inRow = 0;

  constructor(files: SandboxFiles, path: string, file: FileHandle, options: Options) {
    this.#files = files;
    this.#path = path;
    this.#file = file;
    this.#options = options;
  }

  async run(): Promise<void> {
    for (let failures = 0; this.#at !== this.#size; failures += 1) {
      try {
        await this.#receive();
      } catch (error) {
        this.#options.signal.throwIfAborted();
        if (!(error instanceof BerthError) || !error.retryable) throw error;
        this.#inRow += 1;
        if (this.#inRow === FAILURES_IN_ROW || failures === FAILURES) throw this.#explained(error);
        const backedOff = Math.max(FIRST_WAIT_MS * 2 ** (this.#inRow - 1), (error.retryAfter ?? 0) * 1_000);
        await delay(Math.min(LONGEST_WAIT_MS, backedOff), undefined, { signal: this.#options.signal });
      }
    }
  }

  /** Reports whether the file has changed since the last part was requested. */
  async hasChanged(): Promise<boolean> {
    if (this.#etag === undefined || this.#at === 0) return false;
    const range = { from: this.#at - 1, length: 1, ifRange: this.#etag };
    const last = await this.#files.download(this.#path, { ...range, signal: this.#options.signal });
    await last.stream.cancel();
    return last.etag !== this.#etag;
  }

  async #receive(): Promise<void> {
    const { signal, passed } = this.#options;
    const resumes = this.#at > 0 && this.#etag !== undefined;
    const range = resumes ? { from: this.#at, ifRange: this.#etag as string } : {};
    const download = await this.#files.download(this.#path, { ...range, signal });
    if (download.from !== this.#at) await this.#startOver(download);
    this.#etag = download.etag;
    this.#size = download.size;
    for await (const chunk of download.stream) {
      signal.throwIfAborted();
      for (let sent = 0; sent < chunk.length;) {
        const { bytesWritten } = await this.#file.write(chunk, sent, chunk.length - sent, this.#at);
        sent += bytesWritten;
        this.#at += bytesWritten;
      }
      this.#inRow = 0;
      passed(this.#at);
    }
  }

  /** The file has changed, or cannot be resumed. */
  async #startOver({ from, etag, stream }: FileDownload): Promise<void> {
    const { note, what } = this.#options;
    if (from !== 0) {
      await stream.cancel();
      throw new CliFailure(`${plainText(what)}: the service sent another part of the file than requested`);
    }
    if (this.#etag !== undefined && etag !== this.#etag)
      note(`berth: ${plainText(what)} has changed meanwhile: copying it from its start`);
    await this.#file.truncate(0);
    this.#at = 0;
  }

  #explained(error: BerthError): CliFailure {
    const { what } = this.#options;
    const got = `${this.#at}${this.#size === undefined ? '' : ` of ${this.#size}`} bytes`;
    const message = `${plainText(what)}: the connection keeps breaking after ${got}: ${plainText(error.message)}`;
    return new CliFailure(message, { cause: error });
  }
}
