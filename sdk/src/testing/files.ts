// In-memory files of a test sandbox. Without links, modes and disk limits.
import { FILE_LIMITS } from '../generated/limits.ts';
import type { FileContent, FileEntry, FilesSnapshot, FolderListing, WrittenFile } from '../generated/raw/index.ts';
import { Refusal } from './refusal.ts';

const HOME = '/code';

export class TestFiles {
  readonly #files = new Map<string, Uint8Array>();
  readonly #folders = new Set<string>(['/', HOME]);

  read(path: string): FileContent {
    const full = resolve(path);
    const bytes = this.#files.get(full);
    if (bytes === undefined)
      throw this.#folders.has(full) ? new Refusal('not_a_file', `${full} is a directory`) : notFound(full);
    if (bytes.length > FILE_LIMITS.readBytes)
      throw new Refusal('file_too_large', `${full} is longer than ${FILE_LIMITS.readBytes} bytes`);
    const text = asText(bytes);
    if (text !== null) return { path: full, content: text, encoding: 'utf8', size: bytes.length };
    return { path: full, content: btoa(binaryOf(bytes)), encoding: 'base64', size: bytes.length };
  }

  write(path: string, content: string, encoding: string): WrittenFile {
    const full = resolve(path);
    const bytes = encoding === 'base64' ? fromBase64(content) : new TextEncoder().encode(content);
    if (bytes.length > FILE_LIMITS.writeBytes)
      throw new Refusal('file_too_large', `the file is longer than ${FILE_LIMITS.writeBytes} bytes`);
    if (this.#folders.has(full)) throw new Refusal('not_a_file', `${full} is a directory`);
    for (let folder = parentOf(full); !this.#folders.has(folder); folder = parentOf(folder)) {
      if (this.#files.has(folder)) throw new Refusal('not_a_directory', `${folder} is a file`);
      this.#folders.add(folder);
    }
    this.#files.set(full, bytes);
    return { path: full, size: bytes.length };
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
    });
    return [
      ...[...this.#folders].filter(within).map((path) => entry(path, 'directory')),
      ...[...this.#files.keys()].filter(within).map((path) => entry(path, 'file')),
    ].toSorted((one, other) => (one.label < other.label ? -1 : 1));
  }
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

function asText(bytes: Uint8Array): string | null {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

function fromBase64(content: string): Uint8Array {
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(content))
    throw new Refusal('invalid_request', 'body.content must be base64: the standard alphabet, with padding');

  return Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
}

function binaryOf(bytes: Uint8Array): string {
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return binary;
}
