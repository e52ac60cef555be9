// Watches of folders by their callers. A watch serves all callers that name the same folder, ends
// when nobody asks for its changes, and may end by itself when changes are missing (watch.pl).
import { isUtf8 } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { GuestFileChange } from '@berth/protocol/calls/file-watch.ts';
import { FILE_PATH_BYTES, FILE_WATCH_LIMITS, FILE_WATCH_WAITING } from '@berth/protocol/guest-limits.ts';
import { ChangeSignal } from '../machine/change-signal.ts';
import type { Files } from './files.ts';
import { KeptChanges } from './kept-changes.ts';
import { FileRefused } from './refused.ts';

interface Watched {
  path: string;
  recursive: boolean;
}

interface Asked {
  cursor: string | undefined;
  waitMs: number;
  signal: AbortSignal;
}

interface Changes {
  changes: GuestFileChange[];
  cursor: string;
  /** Changes since the cursor of the caller may be missing. */
  reset: boolean;
}

export class FileWatches {
  readonly #files: Files;
  /** By folder; also those that begin. */
  readonly #watches = new Map<string, Promise<FileWatch>>();
  #waiting = 0;

  constructor(files: Files) {
    this.#files = files;
  }

  /** See the call `watchFiles`. Rejects with {@link FileRefused}. */
  async changes(watched: Watched, { cursor, waitMs, signal }: Asked): Promise<Changes> {
    const key = `${watched.recursive} ${watched.path}`;
    const watch = await this.#begun(key, watched);
    const [id, number] = cursor?.split('.') ?? [];
    if (id === watch.id) {
      const mayWait = waitMs > 0 && this.#waiting < FILE_WATCH_WAITING;
      this.#waiting += 1;
      try {
        const found = await watch.after(Number(number), mayWait ? waitMs : 0, signal);
        if (found !== undefined) return { changes: found.changes, cursor: `${id}.${found.last}`, reset: false };
      } finally {
        this.#waiting -= 1;
      }
    }
    const next = watch.hasEnded ? await this.#begun(key, watched) : watch;
    next.use();
    return { changes: [], cursor: `${next.id}.${next.last}`, reset: cursor !== undefined };
  }

  #begun(key: string, watched: Watched): Promise<FileWatch> {
    const known = this.#watches.get(key);
    if (known !== undefined) return known;
    const most = FILE_WATCH_LIMITS.perSandbox;
    if (this.#watches.size >= most) throw new FileRefused('watch_limit', `${most} folders are watched already`);
    const begun = this.#begin(watched, () => void this.#watches.delete(key));
    this.#watches.set(key, begun);
    begun.catch(() => this.#watches.delete(key));
    return begun;
  }

  /** Not ended by its first caller: others may wait for it too. */
  async #begin({ path, recursive }: Watched, onEnd: () => void): Promise<FileWatch> {
    const records = await this.#files.watch(path, recursive, new AbortController().signal);
    return new FileWatch(path, records, onEnd);
  }
}

class FileWatch {
  readonly id = randomBytes(8).toString('hex');
  readonly #folder: string;
  readonly #records: Readable;
  readonly #onEnd: () => void;
  #unused: NodeJS.Timeout | undefined;
  readonly #kept = new KeptChanges();
  #partial = Buffer.alloc(0);
  #hasEnded = false;
  readonly #changes = new ChangeSignal();

  constructor(folder: string, records: Readable, onEnd: () => void) {
    this.#folder = folder === '/' ? '' : folder;
    this.#records = records;
    this.#onEnd = onEnd;
    this.use();
    records.on('data', (bytes: Buffer) => this.#take(bytes)).resume();
    records.on('error', () => undefined);
    records.once('end', () => this.#end()).once('close', () => this.#end());
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Number of the last change. */
  get last(): number {
    return this.#kept.last;
  }

  /** Puts off the end for want of use. */
  use(): void {
    if (this.#hasEnded) return;
    clearTimeout(this.#unused);
    this.#unused = setTimeout(() => this.#end(), FILE_WATCH_LIMITS.unusedSeconds * 1_000).unref();
  }

  /** Changes after the number, at the latest after the wait. Undefined: some may be missing. */
  async after(number: number, waitMs: number, signal: AbortSignal): Promise<ReturnType<KeptChanges['after']>> {
    const untilMs = performance.now() + waitMs;
    for (;;) {
      this.use();
      const found = this.#hasEnded ? undefined : this.#kept.after(number);
      if (found === undefined || found.changes.length > 0) return found;
      if (!(await this.#changes.hasChanged(untilMs, signal))) return found;
    }
  }

  #take(bytes: Buffer): void {
    const all = Buffer.concat([this.#partial, bytes]);
    let from = 0;
    for (let end = all.indexOf(0); end >= 0; end = all.indexOf(0, from)) {
      const change = this.#changeOf(all.subarray(from, end));
      // The tenant can stop and change the process that watches.
      if (change === undefined) return this.#end();
      this.#kept.add(change);
      from = end + 1;
    }
    this.#partial = Buffer.from(all.subarray(from));
    if (this.#partial.length > 2 * FILE_PATH_BYTES) this.#end();
    else if (from > 0) this.#changes.changed();
  }

  #changeOf(record: Buffer): GuestFileChange | undefined {
    const change = CHANGES[String.fromCharCode(record[0] ?? 0)];
    const kind = KINDS[String.fromCharCode(record[1] ?? 0)];
    const below = record.subarray(2);
    if (change === undefined || kind === undefined || this.#folder.length + below.length > FILE_PATH_BYTES)
      return undefined;
    if (!isUtf8(below)) {
      // No call takes such a path.
      const parts = below.toString('latin1').split('/');
      const exact = parts.findIndex((part) => !isUtf8(Buffer.from(part, 'latin1')));
      const parent = Buffer.from(parts.slice(0, exact).join('/'), 'latin1').toString();
      return { path: this.#folder + parent || '/', change: 'changed', kind: 'directory' };
    }
    const path = this.#folder + below.toString() || '/';
    return { path, change, ...(kind === 'unknown' ? {} : { kind }) };
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    clearTimeout(this.#unused);
    this.#records.destroy();
    this.#onEnd();
    this.#changes.changed();
  }
}

const CHANGES: Readonly<Record<string, GuestFileChange['change']>> = { c: 'created', w: 'changed', r: 'removed' };
const KINDS: Readonly<Record<string, GuestFileChange['kind'] | 'unknown'>> = {
  d: 'directory',
  f: 'file',
  l: 'link',
  o: 'other',
  '-': 'unknown',
};
