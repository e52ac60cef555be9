// File calls as the tenant's user: read, write and list through the helper process (agent.ts), so
// that the daemon never waits for a file system. Owns the concurrency limit, the timeout of a call,
// and the mapping of refusals.
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import {
  FILE_CALL_SECONDS,
  FILE_CALLS,
  FILE_ERRORS,
  FILE_LIST,
  FILE_READ_BYTES,
  type FileErrorCode,
} from '@berth/protocol/guest-limits.ts';
import { CallSlots, LineFull } from './call-slots.ts';
import type { FileAgent } from './agent.ts';

/** Longer than any first line of the helper. */
const FIRST_LINE_BYTES = 64;

/** `status`: HTTP status; `errno`: the kernel's error name, when no code covers it. */
export class FileRefused extends Error {
  override readonly name = 'FileRefused';
  readonly code: FileErrorCode;
  readonly errno: string | undefined;

  constructor(code: FileErrorCode, message: string, errno?: string) {
    super(message);
    this.code = code;
    this.errno = errno;
  }

  get status(): number {
    return FILE_ERRORS[this.code];
  }
}

/** A response in progress; its holder reads it to its end or destroys it. */
interface FileContent {
  /** Length in bytes; undefined: not known yet. */
  bytes: number | undefined;
  stream: Readable;
}

export class Files {
  readonly #agent: FileAgent;
  readonly #slots = new CallSlots(FILE_CALLS);

  constructor(agent: FileAgent) {
    this.#agent = agent;
  }

  /**
   * Opens a regular file of at most 8 MiB and returns its content as of then. Every call of this
   * class rejects with {@link FileRefused}; aborting `gone` ends it.
   */
  async read(path: string, gone: AbortSignal): Promise<FileContent> {
    const { said, socket } = await this.#call(['read', path, FILE_READ_BYTES], gone);
    return { bytes: Number(said), stream: socket };
  }

  /** Lists the folder, `depth` levels deep; protocol/src/listing.ts defines the format. */
  async list(path: string, depth: number, gone: AbortSignal): Promise<FileContent> {
    const { entries, textBytes, seconds } = FILE_LIST;
    const { socket } = await this.#call(['list', path, depth, entries, textBytes, seconds], gone);
    return { bytes: undefined, stream: socket };
  }

  /** Writes the file whole or not at all, after all of `content`, `bytes` long, has arrived. */
  async write(path: string, bytes: number, content: Readable, gone: AbortSignal): Promise<void> {
    const { socket } = await this.#call(['write', path, bytes], gone, content);
    socket.destroy();
  }

  async #call(
    fields: readonly (string | number)[],
    gone: AbortSignal,
    upload?: Readable,
  ): Promise<{ said: string; socket: Socket }> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(refusal(String(constants.errno.ETIMEDOUT))), FILE_CALL_SECONDS * 1_000);
    const signal = AbortSignal.any([gone, late.signal]);
    let release = (): void => {};
    let socket: Socket;
    try {
      release = await this.#slots.take(signal);
      socket = await this.#agent.connect();
    } catch (error) {
      clearTimeout(timer);
      release();
      throw error instanceof LineFull
        ? new FileRefused('guest_busy', 'too many file calls at once in this machine; try again')
        : error;
    }
    const stop = (): void => void socket.destroy(signal.reason as Error);
    signal.addEventListener('abort', stop, { once: true });
    socket.once('close', () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      release();
    });
    const line = firstLine(socket);
    if (signal.aborted) {
      stop();
    } else {
      const header = Buffer.from(fields.join('\0'));
      socket.write(header.length.toString(16).padStart(8, '0'));
      socket.write(header);
      upload?.pipe(socket);
    }
    const [verdict, said = ''] = (await line).split(' ');
    if (verdict === 'ok') return { said, socket };

    socket.destroy();
    throw refusal(said);
  }
}

/** Reads up to the first line feed; the rest stays in the socket, which is paused. */
function firstLine(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let held: Buffer = Buffer.alloc(0);
    const onData = (chunk: Buffer): void => {
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      const end = held.indexOf(10);
      if (end >= 0) {
        socket.off('data', onData);
        socket.pause();
        if (held.length > end + 1) socket.unshift(held.subarray(end + 1));

        resolve(held.toString('latin1', 0, end));
      } else if (held.length > FIRST_LINE_BYTES) {
        socket.destroy(new Error('the helper for file calls said something else than its protocol'));
      }
    };
    socket.on('data', onData);
    // Stays attached: the reader of the rest adds its own error listener.
    socket.on('error', reject);
    socket.once('close', () => reject(new Error('the helper for file calls ended in the middle of a call')));
  });
}

const CODES: Readonly<Record<string, FileErrorCode>> = {
  directory: 'not_a_file',
  special: 'not_a_file',
  large: 'file_too_large',
  ENOENT: 'file_not_found',
  ENOTDIR: 'not_a_directory',
  EISDIR: 'not_a_file',
  EACCES: 'file_access_denied',
  EPERM: 'file_access_denied',
  EROFS: 'file_access_denied',
  ENAMETOOLONG: 'file_path_invalid',
  ELOOP: 'file_path_invalid',
  ENOSPC: 'guest_disk_full',
  EDQUOT: 'guest_disk_full',
};

/** `why`: an errno of the kernel, or a word of the helper. */
function refusal(why: string): FileRefused {
  const name = Object.entries(constants.errno).find(([, number]) => String(number) === why)?.[0] ?? why;
  const code = CODES[name];
  return code === undefined
    ? new FileRefused('file_system_error', name, /^E[A-Z0-9]+$/.test(name) ? name : undefined)
    : new FileRefused(code, name);
}
