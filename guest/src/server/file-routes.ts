// The file calls of the wire (protocol/src/files.ts): takes what was asked out of the request, and
// sends contents as bytes, as they come.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { FILE_LIST_DEPTH, FILE_PATH_BYTES, FILE_WRITE_BYTES } from '@berth/protocol/guest-limits.ts';
import type { FileWritten } from '@berth/protocol/files.ts';
import { BodyRefused } from './checks.ts';
import { FileRefused, type FileContent, type Files } from '../files/files.ts';

export async function readFile(
  files: Files,
  query: URLSearchParams,
  response: ServerResponse,
  gone: AbortSignal,
): Promise<void> {
  sendBytes(await files.read(pathIn(query), gone), response);
}

export async function listFiles(
  files: Files,
  query: URLSearchParams,
  response: ServerResponse,
  gone: AbortSignal,
): Promise<void> {
  const depth = Number(query.get('depth'));
  const { min, max } = FILE_LIST_DEPTH;
  if (!Number.isInteger(depth) || depth < min || depth > max)
    throw new BodyRefused(`depth must be a whole number from ${min} to ${max}`);

  sendBytes(await files.list(pathIn(query), depth, gone), response);
}

/** Resolves with what to answer. */
export async function writeFile(
  files: Files,
  query: URLSearchParams,
  request: IncomingMessage,
  gone: AbortSignal,
): Promise<FileWritten> {
  const size = Number(request.headers['content-length']);
  try {
    const path = pathIn(query);
    if (!Number.isInteger(size)) throw new BodyRefused('a write needs a Content-Length');

    if (size > FILE_WRITE_BYTES)
      throw new FileRefused('file_too_large', `a file that is written has at most ${FILE_WRITE_BYTES} bytes`);

    await files.write(path, size, request, gone);
    return { size };
  } finally {
    // What is left of a body that was refused is dropped; who still sends it would not see the
    // answer otherwise.
    request.resume();
  }
}

function pathIn(query: URLSearchParams): string {
  const path = query.get('path') ?? '';
  if (!path.startsWith('/') || path.includes('\0')) throw new BodyRefused('path must be an absolute path without NUL');

  if (Buffer.byteLength(path) > FILE_PATH_BYTES)
    throw new FileRefused('file_path_invalid', `path has more than ${FILE_PATH_BYTES} bytes`);

  return path;
}

/** An answer that is cut short is broken off, so that nobody takes it for whole. */
function sendBytes({ bytes, stream }: FileContent, response: ServerResponse): void {
  let sent = 0;
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    ...(bytes === undefined ? {} : { 'content-length': bytes }),
  });
  stream.on('data', (chunk: Buffer) => (sent += chunk.length));
  stream.once('error', () => response.destroy());
  stream.once('end', () => {
    if (bytes === undefined || sent === bytes) response.end();
    else response.destroy();
  });
  stream.pipe(response, { end: false });
}
