// Contents of any length, as streams through the host. Access is rechecked while they are open, and
// they take the org's share of open connections.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { Readable, type Duplex } from 'node:stream';
import { partOf, type RangeRequest } from '@berth/contract/files/byte-range.ts';
import type { UploadedFile } from '@berth/contract/files/transfers.ts';
import { FILE_LIMITS } from '@berth/contract/route/limits.ts';
import { fileOffer, fileStored } from '@berth/protocol/calls/files.ts';
import { firstLine } from '@berth/protocol/http/first-line.ts';
import { FILE_CALL_SECONDS } from '@berth/protocol/guest-limits.ts';
import { exactly, type Upload } from '@berth/protocol/http/serve.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import type { HostClient, OwnedVm } from '../../hosts/client.ts';
import { orEarlier } from '../../hosts/earlier.ts';
import { HostError } from '../../hosts/error.ts';
import { CodedError, invalidField } from '../../rules/coded-error.ts';
import { filePath, quotedPath } from '../../rules/files/path.ts';
import { openRefusal, SandboxConnection, type Connecting, type ConnectingByLink } from '../connections/connections.ts';
import type { ServiceContext } from '../context/context.ts';
import { APPEND_WORDS } from './failure.ts';
import {
  MAY_BE_WRITTEN,
  noteChange,
  optionsOf,
  PART_MAY_BE_WRITTEN,
  readingOf,
  useFiles,
  type FileCall,
  type FileUse,
  type WriteOptions,
} from './use.ts';

/** A guest ends a silent transfer earlier, unless it is hostile. */
const SILENT_MS = 2 * FILE_CALL_SECONDS * 1_000;
const LINE_BYTES = 256;
/** Memory of a transfer: the buffers of its sockets. */
const BUFFERED_BYTES = 262_144;

export type { Upload };

export type Transfer = FileCall & (Connecting | ConnectingByLink);

type Opening = (host: HostClient, vm: OwnedVm, options: { signal: AbortSignal }) => Promise<Duplex>;

export interface Download {
  bytes: number;
  stream: Readable;
  /** Absent for generated files, and from a VM of an earlier version. */
  etag?: string;
  /** `Content-Range` of a part. */
  range?: string;
}

/**
 * The content of a regular file, or a part of it. The holder reads or destroys the stream. Throws
 * `range_not_satisfiable`. A VM of an earlier version sends the whole content.
 */
export async function downloadFile(
  context: ServiceContext,
  call: Transfer & { range: RangeRequest },
  given: { path: string },
): Promise<Download> {
  const path = filePath(given.path);
  const opening: Opening = (host, vm, options) =>
    orEarlier(
      () => host.openPart(vm, path, options),
      () => host.openFile(vm, { path }, options),
    );
  return await transfer(context, call, readingOf(path), opening, async (connection) => {
    const { bytes, ...about } = chosenPart(
      await firstLine(connection.stream, LINE_BYTES),
      call.range,
      connection,
      path,
    );
    const stream = Readable.from(exactly(bytes)(connection.stream), { objectMode: false });
    stream.once('close', () => connection.close());
    const leave = (error: Error): void => {
      // Its reader waits for the next bytes of the sandbox.
      connection.close();
      stream.destroy(error);
    };
    void connection.over.then(leave);
    if (call.signal.aborted) leave(call.signal.reason as Error);
    else call.signal.addEventListener('abort', () => leave(call.signal.reason as Error), { once: true });
    // A break before the first byte has a status.
    if (bytes > 0) await once(stream, 'readable');
    return { bytes, stream, ...about };
  });
}

/** Chooses the part by the guest's first line, and requests it. */
function chosenPart(
  line: string,
  asked: RangeRequest,
  { stream }: SandboxConnection,
  path: string,
): Omit<Download, 'stream'> {
  // The line of a VM of an earlier version, which sends the content unasked.
  const plain = /^\d{1,16}$/.test(line);
  const offer = fileOffer.safeDecode(plain ? `${line} -` : line);
  if (!offer.success) throw broken('no length', offer.error);
  const { size, version } = offer.data;
  const etag = version === null ? undefined : `"${version}"`;
  const part = etag === undefined ? { first: 0, length: size, partial: false } : partOf(asked, size, etag);
  if (part === null) {
    throw new CodedError(
      'range_not_satisfiable',
      `cannot read the range of ${quotedPath(path)}: it begins behind the end, at ${size} bytes`,
      { contentRange: `bytes */${size}` },
    );
  }
  const { first, length, partial } = part;
  if (!plain) stream.write(`${first} ${length}\n`);
  return {
    bytes: length,
    ...(etag === undefined ? {} : { etag }),
    ...(partial ? { range: `bytes ${first}-${first + length - 1}/${size}` } : {}),
  };
}

/**
 * Writes a file atomically, once the whole content has arrived. With `offset`, appends to a file of
 * that size: bytes that arrived before a failure stay.
 */
export async function uploadFile(
  context: ServiceContext,
  call: Transfer,
  given: { path: string; offset?: number | undefined } & WriteOptions,
  { bytes, content }: Upload,
): Promise<UploadedFile> {
  const path = filePath(given.path);
  const { offset } = given;
  const size = (offset ?? 0) + bytes;
  const writing = offset === undefined ? { open: MAY_BE_WRITTEN } : { open: PART_MAY_BE_WRITTEN, words: APPEND_WORDS };
  const query = { path, bytes, ...(offset === undefined ? optionsOf(given) : appendingOf(given, offset, size)) };
  const opening: Opening = (host, vm, options) => host.openFile(vm, query, options);
  const use: FileUse = { action: 'files_write', what: quotedPath(path), ...writing };
  return await transfer(context, call, use, opening, async (connection) => {
    const hash = createHash('sha256');
    content.on('data', (chunk: Buffer) => hash.update(chunk));
    const outcome = firstLine(connection.stream, LINE_BYTES);
    const stalled = watchArrival(content, connection.stream, offset === undefined ? 'nothing is' : 'a part may be');
    content.pipe(connection.stream, { end: false });
    try {
      const stored = storedSize(await Promise.race([outcome, stalled.failed, refusalOf(connection)]), path, offset);
      if (stored !== size) throw broken('a wrong size', undefined);
    } finally {
      stalled.end();
      content.unpipe(connection.stream);
      connection.close();
    }
    await noteChange(context, call, 'sandbox_file_written', { path, size });
    return { path, size, sha256: hash.digest('hex') };
  });
}

/** Throws `invalid_request` for an append with a condition, or beyond the largest size. */
function appendingOf(options: WriteOptions, offset: number, size: number): { offset: number; mode?: string } {
  if (options.ifUnchanged !== undefined)
    throw invalidField('query.ifUnchanged', 'cannot be combined with offset: an append has its size as the condition');
  if (!Number.isSafeInteger(size))
    throw invalidField('query.offset', `must be at most ${Number.MAX_SAFE_INTEGER} with the bytes of the body`);
  return { offset, ...optionsOf({ mode: options.mode }) };
}

async function transfer<T>(
  context: ServiceContext,
  call: Transfer,
  use: FileUse,
  open: Opening,
  work: (connection: SandboxConnection) => Promise<T>,
): Promise<T> {
  call.hold(BUFFERED_BYTES);
  return await useFiles(context, call, use, async (host, { id, org_id: orgId }) => {
    const stream = await open(host, { vmId: id, orgId }, { signal: call.signal }).catch((error: unknown) => {
      throw openRefusal(error, 'a file') ?? error;
    });
    const connection = new SandboxConnection(context, call, stream);
    const leave = (): void => void stream.destroy(call.signal.reason as Error);
    call.signal.addEventListener('abort', leave, { once: true });
    (stream as Socket).setTimeout(SILENT_MS, () => stream.destroy());
    try {
      return await work(connection);
    } catch (error) {
      connection.close();
      if (call.signal.aborted) throw call.signal.reason;
      if (error instanceof CodedError || error instanceof HostError) throw error;
      throw (await connection.refusalAfterBreak()) ?? broken('the stream closed early', error);
    }
  });
}

/** Throws the guest's refusal. */
function storedSize(line: string, path: string, offset: number | undefined): number {
  const stored = fileStored.safeParse(parseJson(line));
  if (!stored.success) throw broken('no outcome', stored.error);
  if ('size' in stored.data) return stored.data.size;
  const { code, errno, size } = stored.data.error;
  if (offset !== undefined && size !== undefined) {
    throw new CodedError(
      'file_changed',
      `cannot append to ${quotedPath(path)} at byte ${offset}: it has ${size} bytes. Continue there, or delete it`,
    );
  }
  throw new HostError(code, 'the guest refused the write', { errno });
}

async function refusalOf(connection: SandboxConnection): Promise<never> {
  throw await connection.over;
}

/** `failed` rejects when the caller, rather than the sandbox, stops sending. */
function watchArrival(content: Readable, target: Duplex, written: string): { failed: Promise<never>; end: () => void } {
  const { promise, reject } = Promise.withResolvers<never>();
  // Nobody waits any more once the transfer has ended.
  promise.catch(() => undefined);
  const timer = setTimeout(() => {
    if (target.writableNeedDrain) {
      timer.refresh();
      return;
    }
    const stalled = `the request body stalled for ${FILE_LIMITS.stalledSeconds} s; ${written} written`;
    reject(new CodedError('upload_stalled', `cannot write the file: ${stalled}`));
  }, FILE_LIMITS.stalledSeconds * 1_000);
  const refresh = (): void => void timer.refresh();
  content.on('data', refresh).once('end', () => clearTimeout(timer));
  const end = (): void => {
    clearTimeout(timer);
    content.off('data', refresh);
  };
  return { failed: promise, end };
}

function broken(what: string, cause: unknown): HostError {
  return new HostError('guest_unreachable', `a file transfer failed: ${what}`, { cause });
}
