// File calls as the tenant's user, through the helper process (agent.ts), so that the daemon never
// waits for a file system. Owns the concurrency limit and the timeout of a call.
import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import type { StatOfFile } from '@berth/protocol/calls/files.ts';
import {
  FILE_CALL_SECONDS,
  FILE_CALLS,
  FILE_LIST,
  FILE_READ_BYTES,
  FILE_TRANSFERS,
  FILE_WATCH_BEGIN_SECONDS,
  FILE_WATCH_LIMITS,
  FILE_WRITE_BYTES,
} from '@berth/protocol/guest-limits.ts';
import { firstLine } from '@berth/protocol/http/first-line.ts';
import { CallSlots, LineFull } from '@berth/protocol/call-slots.ts';
import type { FileAgent } from './agent.ts';
import { FileRefused, refusal } from './refused.ts';

/** Longer than any first line of the helper. */
const FIRST_LINE_BYTES = 192;

/** A response in progress; its holder reads it to its end or destroys it. */
interface FileContent {
  /** Length in bytes; undefined: not known yet. */
  bytes: number | undefined;
  stream: Readable;
}

/** Content of a write, `bytes` long, which the writer sends. */
interface Content {
  bytes: number;
  content: Readable;
}

interface NewContent extends Content {
  /** SHA-256 of the content that the write replaces, or `absent`. */
  ifUnchanged?: string | undefined;
  /** Permission bits in octal; by default those of the file that the write replaces. */
  mode?: string | undefined;
}

interface Appending {
  offset: number;
  mode?: string | undefined;
}

/** An open file, of which the holder takes one part or none. */
export interface OpenFile {
  /** Size and version of the content, as the caller receives them. */
  offer: string;
  size: number;
  take(first: number, length: number): Readable;
  close(): void;
}

interface CallOptions {
  upload?: Content & Pick<NewContent, 'ifUnchanged'>;
  /** Without a limit of time while bytes move. */
  transfer?: boolean;
  /** Places that the call takes one of. */
  slots?: CallSlots;
}

/** Values of the helper's CONDITION. */
const CONDITION = { none: 0, unchanged: 1, absent: 2 } as const;

export class Files {
  readonly #agent: FileAgent;
  readonly #calls = new CallSlots(FILE_CALLS);
  readonly #transfers = new CallSlots(FILE_TRANSFERS);
  /** Places of watches; a queued one takes that of a watch that closes. */
  readonly #watches = new CallSlots({ atOnce: FILE_WATCH_LIMITS.perSandbox, waiting: FILE_WATCH_LIMITS.perSandbox });

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

  /** Lists the folder, `depth` levels deep; protocol/src/files.ts defines the format. */
  async list(path: string, depth: number, gone: AbortSignal, details = false): Promise<FileContent> {
    const { entries, textBytes, seconds } = FILE_LIST;
    const fields = ['list', path, depth, entries, textBytes, seconds, details ? 1 : 0];
    const { socket } = await this.#call(fields, gone);
    return { bytes: undefined, stream: socket };
  }

  /** Describes a file, a folder or a link itself. */
  async stat(path: string, gone: AbortSignal): Promise<StatOfFile> {
    const { said, socket } = await this.#call(['stat', path], gone);
    const [kind = '', size, seconds, mode = '', resolved = '-', length] = said.split(' ');
    const target = Buffer.concat((await socket.toArray()) as Buffer[]);
    if (target.length !== Number(length)) throw new Error('the helper for file calls ended in the middle of a call');
    return {
      kind: KINDS[kind] ?? 'other',
      size: Number(size),
      mtimeSeconds: Number(seconds),
      mode,
      ...(kind === 'l' && isUtf8(target) ? { target: target.toString() } : {}),
      ...(kind === 'l' ? { resolved: RESOLVED[resolved] ?? null } : {}),
    };
  }

  /** As {@link read}, for a file of any length. */
  async fetch(path: string, gone: AbortSignal): Promise<{ bytes: number; stream: Readable }> {
    const { said, socket } = await this.#call(['fetch', path, FILE_READ_BYTES], gone, { transfer: true });
    return { bytes: Number(said), stream: socket };
  }

  /** Opens a regular file of any length for one part of it. */
  async open(path: string, gone: AbortSignal): Promise<OpenFile> {
    const { said, socket } = await this.#call(['part', path, FILE_READ_BYTES], gone, { transfer: true });
    return {
      offer: said,
      size: Number.parseInt(said, 10),
      take: (first, length) => {
        socket.write([first, length].map((digits) => String(digits).padStart(20, '0')).join(''));
        return socket;
      },
      close: () => void socket.destroy(),
    };
  }

  /**
   * Writes the file whole or not at all, after all of the content has arrived. `transfer`: of any
   * length; over 2 MiB, the file must be replaceable.
   */
  async write(path: string, upload: NewContent, gone: AbortSignal, transfer = false): Promise<void> {
    const { bytes, ifUnchanged, mode } = upload;
    const condition =
      CONDITION[ifUnchanged === undefined ? 'none' : ifUnchanged === 'absent' ? ifUnchanged : 'unchanged'];
    const fields = [
      'write',
      path,
      bytes,
      condition,
      FILE_WRITE_BYTES,
      transfer ? 1 : 0,
      mode === undefined ? -1 : bitsOf(mode),
    ];
    await this.#change(fields, gone, { upload, transfer });
  }

  /**
   * Appends to a file of exactly `offset` bytes, or to a new one if that is 0. Bytes that arrived
   * before a failure stay. `mode`: of a file that the call creates.
   */
  async append(path: string, upload: Content & Appending, gone: AbortSignal): Promise<void> {
    const { bytes, offset, mode } = upload;
    const fields = ['append', path, bytes, offset, mode === undefined ? -1 : bitsOf(mode)];
    await this.#change(fields, gone, { upload, transfer: true });
  }

  /** Deletes a file, a link itself or an empty folder; `recursive`: a folder with its content. */
  async remove(path: string, recursive: boolean, gone: AbortSignal): Promise<void> {
    await this.#change(['remove', path, recursive ? 1 : 0], gone);
  }

  /** Sets the permission bits, in octal, of a file or folder; follows links. */
  async setMode(path: string, mode: string, gone: AbortSignal): Promise<void> {
    await this.#change(['mode', path, bitsOf(mode)], gone);
  }

  async move(path: string, to: string, replace: boolean, gone: AbortSignal): Promise<void> {
    await this.#change(['move', path, to, replace ? 1 : 0], gone);
  }

  /**
   * Watches a folder. The stream has the records of watch.pl; its end says that some are missing.
   * The caller destroys the stream. `gone` ends the watch.
   */
  async watch(path: string, recursive: boolean, gone: AbortSignal): Promise<Readable> {
    const fields = ['watch', path, recursive ? 1 : 0, FILE_WATCH_LIMITS.folders, FILE_WATCH_BEGIN_SECONDS];
    const { socket } = await this.#call(fields, gone, { transfer: true, slots: this.#watches });
    return socket.setTimeout(0);
  }

  async makeFolder(path: string, gone: AbortSignal): Promise<void> {
    await this.#change(['folder', path], gone);
  }

  async #change(fields: readonly (string | number)[], gone: AbortSignal, options?: CallOptions): Promise<void> {
    const { socket } = await this.#call(fields, gone, options);
    socket.destroy();
  }

  async #call(
    fields: readonly (string | number)[],
    gone: AbortSignal,
    { upload, transfer = false, slots = transfer ? this.#transfers : this.#calls }: CallOptions = {},
  ): Promise<{ said: string; socket: Socket }> {
    const late = new AbortController();
    const giveUp = (): void => late.abort(refusal(String(constants.errno.ETIMEDOUT)));
    const timer = setTimeout(giveUp, FILE_CALL_SECONDS * 1_000);
    const signal = AbortSignal.any([gone, late.signal]);
    let release = (): void => {};
    let socket: Socket;
    try {
      release = await slots.take(signal);
      socket = await this.#agent.connect();
    } catch (error) {
      clearTimeout(timer);
      release();
      throw error instanceof LineFull
        ? new FileRefused('guest_busy', 'too many file calls at once in this machine; try again')
        : error;
    }
    if (transfer) {
      clearTimeout(timer);
      socket.setTimeout(FILE_CALL_SECONDS * 1_000, giveUp);
    }
    const stop = (): void => void socket.destroy(signal.reason as Error);
    signal.addEventListener('abort', stop, { once: true });
    socket.once('close', () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      release();
    });
    let line = firstLine(socket, FIRST_LINE_BYTES);
    if (signal.aborted) {
      stop();
    } else {
      const header = Buffer.from(fields.join('\0'));
      socket.write(header.length.toString(16).padStart(8, '0'));
      socket.write(header);
      upload?.content.pipe(socket, { end: false });
    }
    for (;;) {
      const [verdict, said] = split(await line);
      // The close of the socket would unpipe later, which pauses a content that is being drained.
      if (verdict !== 'check') upload?.content.unpipe(socket);
      if (verdict === 'ok') return { said, socket };
      if (verdict !== 'check') {
        socket.destroy();
        throw refusal(said);
      }
      const found = await digestOf(socket, Number(said));
      line = firstLine(socket, FIRST_LINE_BYTES);
      socket.write(found === upload?.ifUnchanged ? 'y' : 'n');
    }
  }
}

const RESOLVED: Readonly<Record<string, StatOfFile['resolved']>> = { d: 'directory', f: 'file', o: 'other' };
const KINDS: Readonly<Record<string, StatOfFile['kind']>> = { d: 'directory', f: 'file', l: 'link', o: 'other' };

function bitsOf(mode: string): number {
  return Number.parseInt(mode, 8);
}

/** The first word of a line, and the rest. */
function split(line: string): [string, string] {
  const at = line.indexOf(' ');
  return at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at + 1)];
}

/** SHA-256 of the next bytes. The helper sends no more before it is answered. */
function digestOf(socket: Socket, bytes: number): Promise<string> {
  const hash = createHash('sha256');
  let left = bytes;
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      socket.off('data', onData).pause();
      resolve(hash.digest('hex'));
    };
    const onData = (chunk: Buffer): void => {
      hash.update(chunk);
      left -= chunk.length;
      if (left <= 0) settle();
    };
    socket.once('close', () => reject(new Error('the helper for file calls ended in the middle of a call')));
    if (left === 0) settle();
    else socket.on('data', onData).resume();
  });
}
