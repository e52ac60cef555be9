// In-memory files of a test sandbox. Without links, modes and disk limits.
import { FILE_LIMITS } from '../../generated/limits.ts';
import type {
  ChangedPath,
  FileContent,
  FileEntry,
  FilesSnapshot,
  FolderListing,
  MovedFile,
  WrittenFile,
} from '../../generated/raw/index.ts';
import { fromBase64, toBase64 } from '../../transport/base64.ts';
import { asText } from '../../transport/utf8.ts';
import { Refusal } from '../requests/refusal.ts';
import { sha256 } from './sha256.ts';

const HOME = '/code';

export class TestFiles {
  readonly #files = new Map<string, Uint8Array>();
  readonly #folders = new Set<string>(['/', HOME]);

  read(path: string): FileContent {
    const full = resolve(path);
    const bytes = this.bytes(path);
    if (bytes.length > FILE_LIMITS.readBytes)
      throw new Refusal('file_too_large', `${full} is longer than ${FILE_LIMITS.readBytes} bytes`);
    return { path: full, size: bytes.length, sha256: sha256(bytes), ...contentOf(bytes) };
  }

  bytes(path: string): Uint8Array {
    const full = resolve(path);
    const bytes = this.#files.get(full);
    if (bytes === undefined)
      throw this.#folders.has(full) ? new Refusal('not_a_file', `${full} is a directory`) : notFound(full);
    return bytes;
  }

  write(path: string, bytes: Uint8Array, ifUnchanged: unknown): WrittenFile {
    if (bytes.length > FILE_LIMITS.writeBytes)
      throw new Refusal('file_too_large', `the file is longer than ${FILE_LIMITS.writeBytes} bytes`);
    return this.store(path, bytes, ifUnchanged);
  }

  /** Writes a file of any size. */
  store(path: string, bytes: Uint8Array, ifUnchanged: unknown): WrittenFile {
    const full = resolve(path);
    const old = this.#files.get(full);
    const seen = old === undefined ? undefined : sha256(old);
    if (this.#folders.has(full)) throw new Refusal('not_a_file', `${full} is a directory`);
    if (ifUnchanged === 'absent' && old !== undefined) throw exists(full);
    if (typeof ifUnchanged === 'string' && ifUnchanged !== 'absent' && ifUnchanged !== seen)
      throw new Refusal('file_changed', `${full} has changed since it was read`);
    this.#makeFolders(parentOf(full));
    this.#files.set(full, bytes);
    return { path: full, size: bytes.length, sha256: sha256(bytes) };
  }

  delete(path: string, recursive: boolean): ChangedPath {
    const full = resolve(path);
    const below = this.#below(full);
    if (!this.#has(full)) throw notFound(full);
    if (below.length > 0 && !recursive) throw new Refusal('folder_not_empty', `${full} is not empty`);
    for (const one of [full, ...below]) {
      this.#files.delete(one);
      this.#folders.delete(one);
    }
    return { path: full };
  }

  move(from: string, to: string, replace: boolean): MovedFile {
    const [source, target] = [resolve(from), resolve(to)];
    if (!this.#has(source)) throw notFound(source);
    if (!this.#folders.has(parentOf(target))) throw notFound(parentOf(target));
    if (this.#has(target) && !replace) throw exists(target);
    if (this.#below(target).length > 0) throw new Refusal('folder_not_empty', `${target} is not empty`);
    for (const one of [source, ...this.#below(source)]) {
      const moved = target + one.slice(source.length);
      const bytes = this.#files.get(one);
      if (bytes === undefined) this.#folders.add(moved);
      else this.#files.set(moved, bytes);
      this.#files.delete(one);
      this.#folders.delete(one);
    }
    return { from: source, to: target };
  }

  createFolder(path: string): ChangedPath {
    const full = resolve(path);
    if (this.#has(full)) throw exists(full);
    this.#makeFolders(full);
    return { path: full };
  }

  #has(path: string): boolean {
    return this.#files.has(path) || this.#folders.has(path);
  }

  #below(path: string): string[] {
    return [...this.#folders, ...this.#files.keys()].filter((one) => one.startsWith(`${path}/`));
  }

  #makeFolders(path: string): void {
    for (let folder = path; !this.#folders.has(folder); folder = parentOf(folder)) {
      if (this.#files.has(folder)) throw new Refusal('not_a_directory', `${folder} is a file`);
      this.#folders.add(folder);
    }
  }

  list(path: string): FolderListing {
    const full = resolve(path);
    return { path: full, truncated: false, entries: this.#entries(full) };
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
    if (!this.#folders.has(folder))
      throw this.#files.has(folder) ? new Refusal('not_a_directory', `${folder} is a file`) : notFound(folder);
    const within = (path: string): boolean => path !== '/' && parentOf(path) === folder;
    const entry = (path: string, type: 'directory' | 'file'): FileEntry => ({
      label: path.slice(path.lastIndexOf('/') + 1),
      path,
      type,
      kind: type,
      size: this.#files.get(path)?.length ?? 0,
    });
    return [
      ...[...this.#folders].filter(within).map((path) => entry(path, 'directory')),
      ...[...this.#files.keys()].filter(within).map((path) => entry(path, 'file')),
    ].toSorted((one, other) => (one.label < other.label ? -1 : 1));
  }
}

function exists(path: string): Refusal {
  return new Refusal('file_exists', `${path} exists already`);
}

function notFound(path: string): Refusal {
  return new Refusal('file_not_found', `there is nothing at ${path}`);
}

/** Resolves `.` and `..` textually. */
function resolve(path: string): string {
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
