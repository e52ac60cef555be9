// Files of a sandbox.
import type { Calls } from './calls.ts';
import type { FileContent, FileEntry, FilesSnapshot, FolderListing, WrittenFile } from './generated/raw/index.ts';
import type { CallOptions } from './transport/transport.ts';

export type FileData = string | Uint8Array | ArrayBuffer;

const BASE64_PIECE = 0x8000;

/** Files of an awake sandbox. Relative paths start at /code. */
export class SandboxFiles {
  readonly #calls: Calls;
  readonly #sandboxId: string;

  /** Constructed by the SDK. */
  constructor(calls: Calls, sandboxId: string) {
    this.#calls = calls;
    this.#sandboxId = sandboxId;
  }

  /** Reads a file as UTF-8; replaces invalid bytes. At most 8 MiB. */
  async read(path: string, options: CallOptions = {}): Promise<string> {
    const file = await this.#read(path, options);
    return file.encoding === 'utf8' ? file.content : new TextDecoder().decode(fromBase64(file.content));
  }

  /** Reads the bytes of a file. At most 8 MiB. */
  async readBytes(path: string, options: CallOptions = {}): Promise<Uint8Array> {
    const file = await this.#read(path, options);
    return file.encoding === 'utf8' ? new TextEncoder().encode(file.content) : fromBase64(file.content);
  }

  /** Writes a file atomically, and creates missing folders. At most 2 MiB. */
  async write(path: string, data: FileData, options: CallOptions = {}): Promise<WrittenFile> {
    const { raw, with: set } = this.#calls;
    const content =
      typeof data === 'string'
        ? { content: data }
        : { content: toBase64(new Uint8Array(data)), encoding: 'base64' as const };
    return await raw.writeFile({ path: { sandboxId: this.#sandboxId }, body: { path, ...content }, ...set(options) });
  }

  /** Lists a folder, by default /code. Check `truncated`. */
  async list(path?: string, options: CallOptions = {}): Promise<FolderListing> {
    const { raw, with: set } = this.#calls;
    return await raw.listFiles({
      path: { sandboxId: this.#sandboxId },
      query: path === undefined ? {} : { path },
      ...set(options),
    });
  }

  /**
   * Lists a folder and its subfolders by path. @param options `depth`: 1 to 5 levels, by default 3
   */
  async tree(path?: string, { depth, ...options }: CallOptions & { depth?: number } = {}): Promise<FilesSnapshot> {
    const { raw, with: set } = this.#calls;
    const query = { ...(path === undefined ? {} : { path }), ...(depth === undefined ? {} : { depth }) };
    return await raw.snapshotFiles({ path: { sandboxId: this.#sandboxId }, query, ...set(options) });
  }

  async #read(path: string, options: CallOptions): Promise<FileContent> {
    const { raw, with: set } = this.#calls;
    return await raw.readFile({ path: { sandboxId: this.#sandboxId }, query: { path }, ...set(options) });
  }
}

function toBase64(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += BASE64_PIECE)
    binary += String.fromCharCode(...bytes.subarray(at, at + BASE64_PIECE));
  return btoa(binary);
}

function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

export type { FileEntry, FilesSnapshot, FolderListing, WrittenFile };
