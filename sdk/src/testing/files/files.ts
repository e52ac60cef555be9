// In-memory files of a test sandbox. Without links and disk limits.
import { FILE_LIMITS } from '../../generated/limits.ts';
import type {
  ChangedMode,
  ChangedPath,
  FileChange,
  FileChanges,
  FileContent,
  FileEntry,
  FilesSnapshot,
  FileStat,
  FolderListing,
  MovedFile,
  WrittenFile,
} from '../../generated/raw/index.ts';
import { fromBase64, toBase64 } from '../../transport/base64.ts';
import { asText } from '../../transport/utf8.ts';
import { Refusal } from '../requests/refusal.ts';
import { ChangeLog } from './change-log.ts';
import { sha256 } from './sha256.ts';

const HOME = '/code';

interface StoreOptions {
  ifUnchanged?: unknown;
  mode?: unknown;
}

interface TestFile {
  /** Content of a file; null: a folder. */
  bytes: Uint8Array | null;
  mode: number;
  modifiedMs: number;
  /** Differs after each change. */
  version: number;
}

export class TestFiles {
  /** By path; folders are after their parents. */
  readonly #files = new Map<string, TestFile>();
  readonly #now: () => number;
  readonly #log = new ChangeLog();
  #changes = 0;

  constructor(now: () => number = Date.now) {
    this.#now = now;
    this.#makeFolders(HOME);
  }

  read(path: string): FileContent {
    const full = resolve(path);
    const bytes = this.bytes(path);
    if (bytes.length > FILE_LIMITS.readBytes)
      throw new Refusal('file_too_large', `${full} is longer than ${FILE_LIMITS.readBytes} bytes`);
    return { path: full, size: bytes.length, sha256: sha256(bytes), ...contentOf(bytes) };
  }

  bytes(path: string): Uint8Array {
    const full = resolve(path);
    const { bytes } = this.#find(full);
    if (bytes === null) throw new Refusal('not_a_file', `${full} is a directory`);
    return bytes;
  }

  /** Version of the content, as an `ETag`. */
  etag(path: string): string {
    return `"${this.#find(resolve(path)).version}"`;
  }

  stat(path: string): FileStat {
    const full = resolve(path);
    return { path: full, ...factsOf(this.#find(full)) };
  }

  write(path: string, bytes: Uint8Array, options: StoreOptions): WrittenFile {
    if (bytes.length > FILE_LIMITS.writeBytes)
      throw new Refusal('file_too_large', `the file is longer than ${FILE_LIMITS.writeBytes} bytes`);
    return this.store(path, bytes, options);
  }

  /** Writes a file of any size. */
  store(path: string, bytes: Uint8Array, { ifUnchanged, mode }: StoreOptions): WrittenFile {
    const full = resolve(path);
    const old = this.#files.get(full);
    if (old?.bytes === null) throw new Refusal('not_a_file', `${full} is a directory`);
    if (ifUnchanged === 'absent' && old !== undefined) throw exists(full);
    const isSeen = ifUnchanged === (old && sha256(old.bytes));
    if (typeof ifUnchanged === 'string' && ifUnchanged !== 'absent' && !isSeen)
      throw new Refusal('file_changed', `${full} has changed since it was read`);
    this.#makeFolders(parentOf(full));
    this.#put(full, { bytes, mode: bitsOf(mode) ?? old?.mode ?? 0o644, ...this.#changed() });
    return { path: full, size: bytes.length, sha256: sha256(bytes) };
  }

  /** Appends to a file of exactly `offset` bytes, or to a new one if that is 0. */
  append(path: string, bytes: Uint8Array, offset: number, { mode }: StoreOptions): WrittenFile {
    const full = resolve(path);
    const old = offset > 0 || this.#files.has(full) ? this.bytes(path) : new Uint8Array(0);
    if (old.length !== offset) {
      const found = `it has ${old.length} bytes. Continue there, or delete it`;
      throw new Refusal('file_changed', `cannot append to "${full}" at byte ${offset}: ${found}`);
    }
    const joined = new Uint8Array(offset + bytes.length);
    joined.set(old);
    joined.set(bytes, offset);
    const { size } = this.store(path, joined, { mode: this.#files.get(full) === undefined ? mode : undefined });
    return { path: full, size, sha256: sha256(bytes) };
  }

  delete(path: string, recursive: boolean): ChangedPath {
    const full = resolve(path);
    const below = this.#below(full);
    this.#find(full);
    if (below.length > 0 && !recursive) throw new Refusal('folder_not_empty', `${full} is not empty`);
    this.#remove(full, below);
    return { path: full };
  }

  move(from: string, to: string, replace: boolean): MovedFile {
    const [source, target] = [resolve(from), resolve(to)];
    this.#find(source);
    if (this.#files.get(parentOf(target))?.bytes !== null) throw notFound(parentOf(target));
    if (this.#files.has(target) && !replace) throw exists(target);
    if (this.#below(target).length > 0) throw new Refusal('folder_not_empty', `${target} is not empty`);
    const below = this.#below(source);
    const moved = [source, ...below].map((one) => [target + one.slice(source.length), this.#find(one)] as const);
    this.#remove(source, below);
    for (const [path, file] of moved) this.#put(path, file);
    return { from: source, to: target };
  }

  chmod(path: string, mode: string): ChangedMode {
    const full = resolve(path);
    const file = this.#find(full);
    file.mode = bitsOf(mode) ?? file.mode;
    this.#log.add({ path: full, change: 'changed', kind: kindOf(file) });
    return { path: full, mode: textOf(file.mode) };
  }

  createFolder(path: string): ChangedPath {
    const full = resolve(path);
    if (this.#files.has(full)) throw exists(full);
    this.#makeFolders(full);
    return { path: full };
  }

  #changed(): Pick<TestFile, 'modifiedMs' | 'version'> {
    this.#changes += 1;
    return { modifiedMs: this.#now(), version: this.#changes };
  }

  #find(path: string): TestFile {
    const file = this.#files.get(path);
    if (file !== undefined) return file;
    for (let above = parentOf(path); above !== '/'; above = parentOf(above))
      if (this.#files.get(above)?.bytes instanceof Uint8Array) throw notAFolder(above);
    throw notFound(path);
  }

  #below(path: string): string[] {
    return [...this.#files.keys()].filter((one) => one.startsWith(`${path}/`));
  }

  #makeFolders(path: string): void {
    const found = this.#files.get(path);
    if (found?.bytes === null) return;
    if (found !== undefined) throw notAFolder(path);
    if (path !== '/') this.#makeFolders(parentOf(path));
    this.#put(path, { bytes: null, mode: 0o755, ...this.#changed() });
  }

  #put(path: string, file: TestFile): void {
    this.#files.set(path, file);
    this.#log.add({ path, change: 'created', kind: kindOf(file) });
  }

  #remove(path: string, below: readonly string[]): void {
    const isFolder = this.#find(path).bytes === null;
    for (const one of [path, ...below]) this.#files.delete(one);
    this.#log.add({ path, change: 'removed', ...(isFolder ? { kind: 'directory' } : {}) } satisfies FileChange);
  }

  list(path: string): FolderListing {
    const full = resolve(path);
    return { path: full, truncated: false, entries: this.#entries(full) };
  }

  /** Changes after the cursor. */
  watch(path: string, recursive: boolean, cursor: string | undefined): FileChanges {
    const full = resolve(path);
    if (this.#find(full).bytes !== null) throw notAFolder(full);
    return { path: full, ...this.#log.after(full, recursive, cursor) };
  }

  tree(path: string, depth: number): FilesSnapshot {
    const full = resolve(path);
    const levels = Math.min(FILE_LIMITS.depth.max, Math.max(FILE_LIMITS.depth.min, depth));
    const directories: Record<string, FileEntry[]> = {};
    let open = [full];
    for (let level = 0; level < levels; level += 1) {
      for (const folder of open) directories[folder] = this.#entries(folder);
      open = open.flatMap((folder) =>
        (directories[folder] ?? []).filter(({ type }) => type === 'directory').map((entry) => entry.path),
      );
    }
    return { path: full, truncated: false, directories };
  }

  #entries(folder: string): FileEntry[] {
    if (this.#find(folder).bytes !== null) throw notAFolder(folder);
    return [...this.#files]
      .filter(([path]) => path !== '/' && parentOf(path) === folder)
      .map(([path, file]): FileEntry => {
        const facts = factsOf(file);
        return { label: path.slice(path.lastIndexOf('/') + 1), path, type: facts.kind, ...facts };
      })
      .toSorted((one, other) => (one.label < other.label ? -1 : 1));
  }
}

function factsOf({ bytes, mode, modifiedMs }: TestFile) {
  return {
    kind: kindOf({ bytes }),
    size: bytes?.length ?? 0,
    modifiedAt: new Date(Math.floor(modifiedMs / 1_000) * 1_000).toISOString(),
    mode: textOf(mode),
  };
}

function kindOf({ bytes }: Pick<TestFile, 'bytes'>): 'directory' | 'file' {
  return bytes === null ? 'directory' : 'file';
}

function textOf(mode: number): string {
  return mode.toString(8).padStart(4, '0');
}

function bitsOf(mode: unknown): number | undefined {
  return typeof mode === 'string' ? Number.parseInt(mode, 8) : undefined;
}

function notAFolder(path: string): Refusal {
  return new Refusal('not_a_directory', `${path} is a file`);
}

function exists(path: string): Refusal {
  return new Refusal('file_exists', `${path} exists already`);
}

function notFound(path: string): Refusal {
  return new Refusal('file_not_found', `there is nothing at ${path}`);
}

/** Resolves `.` and `..` textually. */
export function resolve(path: string): string {
  const steps: string[] = [];
  for (const step of (path.startsWith('/') ? path : `${HOME}/${path}`).split('/')) {
    if (step === '..') steps.pop();
    else if (step !== '' && step !== '.') steps.push(step);
  }
  return `/${steps.join('/')}`;
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

/** Text if the bytes are valid UTF-8 without NUL. */
export function contentOf(bytes: Uint8Array): Pick<FileContent, 'content' | 'encoding'> {
  const text = asText(bytes);
  return text === null ? { content: toBase64(bytes), encoding: 'base64' } : { content: text, encoding: 'utf8' };
}

/** The bytes of a write. */
export function bytesOf(content: string, encoding: string, field = 'body.content'): Uint8Array {
  if (encoding !== 'base64') return new TextEncoder().encode(content);
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(content))
    throw new Refusal('invalid_request', `${field} must be base64: the standard alphabet, with padding`);

  return fromBase64(content);
}
