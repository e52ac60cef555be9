// Contents of any length, as streams through the host. Access is rechecked while they are open, and
// they take the org's share of open connections.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { Readable, type Duplex } from 'node:stream';
import { partOf, type RangeRequest } from '@berth/contract/files/byte-range.ts';
import type { WrittenFile } from '@berth/contract/files/files.ts';
import { FILE_LIMITS } from '@berth/contract/route/limits.ts';
import { fileOffer, fileStored } from '@berth/protocol/calls/files.ts';
import { firstLine } from '@berth/protocol/http/first-line.ts';
import { FILE_CALL_SECONDS } from '@berth/protocol/guest-limits.ts';
import { exactly, type Upload } from '@berth/protocol/http/serve.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import type { HostClient, OwnedVm } from '../../hosts/client.ts';
import { orEarlier } from '../../hosts/earlier.ts';
import { HostError } from '../../hosts/error.ts';
import { CodedError } from '../../rules/coded-error.ts';
import { filePath, quotedPath } from '../../rules/files/path.ts';
import { openRefusal, SandboxConnection, type Connecting, type ConnectingByLink } from '../connections/connections.ts';
import type { ServiceContext } from '../context/context.ts';
import {
  MAY_BE_WRITTEN,
  noteChange,
  optionsOf,
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

/** Writes a file atomically, once the whole content has arrived. */
export async function uploadFile(
  context: ServiceContext,
  call: Transfer,
  given: { path: string } & WriteOptions,
  { bytes, content }: Upload,
): Promise<WrittenFile> {
  const path = filePath(given.path);
  const writing = { action: 'files_write', what: quotedPath(path), open: MAY_BE_WRITTEN } as const;
  const query = { path, bytes, ...optionsOf(given) };
  const opening: Opening = (host, vm, options) => host.openFile(vm, query, options);
  return await transfer(context, call, writing, opening, async (connection) => {
    const hash = createHash('sha256');
    content.on('data', (chunk: Buffer) => hash.update(chunk));
    const outcome = firstLine(connection.stream, LINE_BYTES);
    const stalled = watchArrival(content, connection.stream);
    content.pipe(connection.stream, { end: false });
    try {
      const size = storedSize(await Promise.race([outcome, stalled.failed, refusalOf(connection)]));
      if (size !== bytes) throw broken('a wrong size', undefined);
    } finally {
      stalled.end();
      content.unpipe(connection.stream);
      connection.close();
    }
    await noteChange(context, call, 'sandbox_file_written', { path, size: bytes });
    return { path, size: bytes, sha256: hash.digest('hex') };
  });
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
function storedSize(line: string): number {
  const stored = fileStored.safeParse(parseJson(line));
  if (!stored.success) throw broken('no outcome', stored.error);
  if ('size' in stored.data) return stored.data.size;
  const { code, errno } = stored.data.error;
  throw new HostError(code, 'the guest refused the write', { errno });
}

async function refusalOf(connection: SandboxConnection): Promise<never> {
  throw await connection.over;
}

/** `failed` rejects when the caller, rather than the sandbox, stops sending. */
function watchArrival(content: Readable, target: Duplex): { failed: Promise<never>; end: () => void } {
  const { promise, reject } = Promise.withResolvers<never>();
  // Nobody waits any more once the transfer has ended.
  promise.catch(() => undefined);
  const timer = setTimeout(() => {
    if (target.writableNeedDrain) {
      timer.refresh();
      return;
    }
    const limit = `${FILE_LIMITS.stalledSeconds} s`;
    reject(new CodedError('upload_stalled', `cannot write the file: the request body stalled for ${limit}`));
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
