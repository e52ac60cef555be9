// Files of a sandbox.
import type { Calls } from './calls/calls.ts';
import type {
  ChangedMode,
  ChangedPath,
  FileContent,
  CreateFileLinkData,
  FileEntry,
  FileLink,
  FilesSnapshot,
  FileStat,
  FolderListing,
  MovedFile,
  WrittenFile,
} from './generated/raw/index.ts';
import type { FolderEvent, FolderReset, WatchOptions } from './folder-watch.ts';
import { blobOf, bytesOf, offsetOf, type FileData } from './transfers/content.ts';
import { exactly, rangeHeaders, type DownloadOptions } from './transfers/download.ts';
import type { ContinueOptions, ResumableOptions, UploadedPath, UploadSource } from './transfers/resumed-upload.ts';
import { fromBase64, toBase64 } from './transport/base64.ts';
import { BerthError } from './transport/errors.ts';
import type { CallOptions } from './transport/transport.ts';

/**
 * `ifUnchanged`: `sha256` of the content that the write replaces, or `absent` for a new file.
 * `mode`: permission bits in octal, such as `0755`; by default those of the replaced file.
 */
export type WriteOptions = CallOptions & { ifUnchanged?: string | undefined; mode?: string | undefined };

/** Action, by default `read`, lifetime and limits of a link. */
export type FileLinkOptions = CallOptions &
  Omit<CreateFileLinkData['body'], 'path' | 'action'> &
  Partial<Pick<CreateFileLinkData['body'], 'action'>>;

/** The content of a file, to be read or cancelled. */
export interface FileDownload {
  /** Bytes of the whole file. */
  size: number;
  /** Offset of the first byte of the stream: 0 if the service sends more than the range. */
  from: number;
  /** Bytes of the stream. */
  length: number;
  /** Version of the file; absent for generated files, and from a VM of an earlier version. */
  etag?: string;
  stream: ReadableStream<Uint8Array>;
}

/** Files of an awake sandbox. Relative paths start at /code. */
export class SandboxFiles {
  readonly #calls: Calls;
  readonly #sandboxId: string;

  /** Constructed by the SDK. */
  constructor(calls: Calls, sandboxId: string) {
    this.#calls = calls;
    this.#sandboxId = sandboxId;
  }

  /** Reads a file with its encoding and hash. At most 8 MiB. */
  async get(path: string, options: CallOptions = {}): Promise<FileContent> {
    return await this.#read(path, options);
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

  /**
   * Writes a file atomically, and creates missing folders. At most 2 MiB; see {@link upload}. Fails
   * with `file_changed` or `file_exists` if the file is not as `ifUnchanged` says.
   */
  async write(
    path: string,
    data: FileData,
    { ifUnchanged, mode, ...options }: WriteOptions = {},
  ): Promise<WrittenFile> {
    const { raw, with: set } = this.#calls;
    const content =
      typeof data === 'string'
        ? { content: data }
        : { content: toBase64(bytesOf(path, data)), encoding: 'base64' as const };
    const body = { path, ...content, ...given({ ifUnchanged, mode }) };
    return await raw.writeFile({ path: { sandboxId: this.#sandboxId }, body, ...set(options) });
  }

  /**
   * Writes a file of any size atomically, in one request; otherwise as {@link write}. Node opens a
   * local file below 2 GiB as a Blob with `fs.openAsBlob`, which is wrong about larger ones.
   * Without a timeout. See {@link uploadResumable}.
   */
  async upload(
    path: string,
    data: Blob | FileData,
    options: Omit<WriteOptions, 'timeoutMs'> = {},
  ): Promise<WrittenFile> {
    const { ifUnchanged, mode, signal } = options;
    return await this.#put({ path, ...given({ ifUnchanged, mode }) }, data, { signal });
  }

  /**
   * Appends to a file of exactly `offset` bytes, in place: 0 for a new or empty file, which gets
   * `mode`. Not atomic: bytes that arrive before a failure stay. Fails with `file_changed` if the
   * file has another size: {@link stat} has it. `sha256` is that of the data. Without a timeout.
   */
  async append(
    path: string,
    data: Blob | FileData,
    options: Pick<ContinueOptions, 'mode' | 'signal'> & { offset: number },
  ): Promise<WrittenFile> {
    const offset = offsetOf(path, options);
    const { mode, signal } = options;
    const query = { path, offset, ...given({ mode }) };
    return await this.#put(query, data, { signal, repeatable: true });
  }

  /**
   * Sends the bytes that the file lacks, in several requests: the file must be absent, or have the
   * first bytes of the source. Continues after broken connections and outages of up to two minutes.
   * After a failure the file keeps its bytes, and a repeated call continues.
   */
  async continueUpload(path: string, source: UploadSource, options: ContinueOptions = {}): Promise<void> {
    await (await import('./transfers/resumed-upload.ts')).continueUpload(this, path, source, options);
  }

  /**
   * Uploads a file of any size so that it can continue after a failure: sends it to a hidden file
   * beside the target with {@link continueUpload}, then moves that over the target, which has the
   * old or the complete new content at any time. After a failure the hidden file stays, and a
   * repeated call with the same source and `key` continues. Keeps the mode of a replaced file
   * unless `mode` is given. A link, and a sandbox of an earlier release, get {@link upload}.
   */
  async uploadResumable(path: string, source: UploadSource, options: ResumableOptions = {}): Promise<UploadedPath> {
    return await (await import('./transfers/resumed-upload.ts')).uploadResumable(this, path, source, options);
  }

  /**
   * Reads a file of any size, or a range of it, as a stream, which fails with a retryable
   * `connection_failed` if the content breaks off; resume with `from` and `ifRange`. Fails with
   * `range_not_satisfiable` if the range begins behind the end. Without a timeout.
   */
  async download(path: string, { signal, ...options }: DownloadOptions = {}): Promise<FileDownload> {
    const init = { method: 'GET', headers: rangeHeaders(options), signal };
    const response = await this.#calls.transfer(this.#sandboxId, { path }, init);
    const length = Number(response.headers.get('content-length'));
    const [, from = '0', size] = /^bytes (\d+)-\d+\/(\d+)$/.exec(response.headers.get('content-range') ?? '') ?? [];
    const etag = response.headers.get('etag');
    return {
      size: size === undefined ? length : Number(size),
      from: Number(from),
      length,
      ...(etag === null ? {} : { etag }),
      stream: exactly(path, length, response.body ?? new Blob([]).stream(), signal),
    };
  }

  /** Deletes a file, a link itself or an empty folder; `recursive`: a folder and its content. */
  async delete(
    path: string,
    { recursive = false, ...options }: CallOptions & { recursive?: boolean } = {},
  ): Promise<ChangedPath> {
    const { raw, with: set } = this.#calls;
    const query = { path, ...(recursive ? ({ recursive: 'true' } as const) : {}) };
    return await raw.deleteFile({ path: { sandboxId: this.#sandboxId }, query, ...set(options) });
  }

  /** Moves or renames a file or folder. Fails with `file_exists` unless `replace`. */
  async move(
    from: string,
    to: string,
    { replace = false, ...options }: CallOptions & { replace?: boolean } = {},
  ): Promise<MovedFile> {
    const { raw, with: set } = this.#calls;
    return await raw.moveFile({ path: { sandboxId: this.#sandboxId }, body: { from, to, replace }, ...set(options) });
  }

  /** Sets the permission bits, in octal, of a file or folder; follows links. */
  async chmod(path: string, mode: string, options: CallOptions = {}): Promise<ChangedMode> {
    const { raw, with: set } = this.#calls;
    return await raw.setFileMode({ path: { sandboxId: this.#sandboxId }, body: { path, mode }, ...set(options) });
  }

  /** Creates a folder and its missing parents. Fails with `file_exists` if the path exists. */
  async createFolder(path: string, options: CallOptions = {}): Promise<ChangedPath> {
    const { raw, with: set } = this.#calls;
    return await raw.createFolder({ path: { sandboxId: this.#sandboxId }, body: { path }, ...set(options) });
  }

  /** Describes a file, a folder or a link itself. */
  async stat(path: string, options: CallOptions = {}): Promise<FileStat> {
    const { raw, with: set } = this.#calls;
    return await raw.statFile({ path: { sandboxId: this.#sandboxId }, query: { path }, ...set(options) });
  }

  /** Reports whether the path has a file, a folder or a link itself, dangling or not. */
  async exists(path: string, options: CallOptions = {}): Promise<boolean> {
    try {
      await this.stat(path, options);
      return true;
    } catch (error) {
      // A parent of the path is a file.
      if (error instanceof BerthError && (error.code === 'file_not_found' || error.code === 'not_a_directory'))
        return false;
      throw error;
    }
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

  /**
   * Creates a link with which anyone reads (GET, the default) or writes (PUT) one file, such as a
   * browser without an API key; by default for 15 minutes. The sandbox may be asleep, the file
   * absent.
   */
  async link(path: string, { action = 'read', timeoutMs, signal, ...terms }: FileLinkOptions = {}): Promise<FileLink> {
    const { raw, with: set } = this.#calls;
    const body = { path, action, ...terms };
    const call = await raw.createFileLink({
      path: { sandboxId: this.#sandboxId },
      body,
      ...set({ timeoutMs, signal }),
    });
    return call.link;
  }

  /**
   * Changes below a folder, by default /code, as they happen: `for await (const { change, path }
   * of files.watch('src', { recursive: true }))`. The first event is a `reset`: list the folder
   * then, and again at each later one, which says that changes may have been missed. Survives lost
   * connections, restarts of the service and sleeps of the sandbox, and keeps no sandbox awake.
   * Ends with the signal's reason, or an error such as `file_not_found` when the folder is gone.
   */
  async *watch(path?: string, options: WatchOptions = {}): AsyncGenerator<FolderEvent, never, undefined> {
    const { watchFolder } = await import('./folder-watch.ts');
    return yield* watchFolder(this.#calls, this.#sandboxId, path, options);
  }

  async #put(
    query: Record<string, string>,
    data: Blob | FileData,
    init: { signal: AbortSignal | undefined; repeatable?: boolean },
  ): Promise<WrittenFile> {
    const call = { method: 'PUT', body: blobOf(query['path'], data), ...init };
    const response = await this.#calls.transfer(this.#sandboxId, query, call);
    return (await response.json()) as WrittenFile;
  }

  async #read(path: string, options: CallOptions): Promise<FileContent> {
    const { raw, with: set } = this.#calls;
    return await raw.readFile({ path: { sandboxId: this.#sandboxId }, query: { path }, ...set(options) });
  }
}

/** Without absent options. */
function given(options: { ifUnchanged?: string | undefined; mode: string | undefined }) {
  const { ifUnchanged, mode } = options;
  return { ...(ifUnchanged === undefined ? {} : { ifUnchanged }), ...(mode === undefined ? {} : { mode }) };
}

export type {
  ChangedMode,
  ChangedPath,
  DownloadOptions,
  FileContent,
  FileData,
  FileEntry,
  FileLink,
  FilesSnapshot,
  FileStat,
  FolderEvent,
  FolderListing,
  FolderReset,
  MovedFile,
  WatchOptions,
  WrittenFile,
};
