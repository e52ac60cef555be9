// The file calls of the internal protocol (protocol/src/files.ts): straight through to the guest,
// contents as they come.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { FILE_WRITE_BYTES, vmFileQuery, vmFilesQuery } from '@berth/protocol/files.ts';
import { listGuestFiles, readGuestFile, writeGuestFile } from '../guest/file-calls.ts';
import { HostError } from '../vm/host-error.ts';
import type { VmLifecycle } from '../vm/lifecycle/lifecycle.ts';
import { answerJson } from './answer.ts';
import { parse, type Route } from './route.ts';

const FILE = /^\/vms\/([^/]+)\/file$/;
const FILES = /^\/vms\/([^/]+)\/files$/;

export function fileRoutes(lifecycle: VmLifecycle): Route[] {
  return [
    {
      method: 'GET',
      path: FILE,
      handle: async ({ response, url, id, signal }) => {
        const { path } = parse(vmFileQuery, Object.fromEntries(url.searchParams), 'the query');
        await sendBytes(await readGuestFile(lifecycle.guestOf(id), path, signal), response);
      },
    },
    {
      method: 'PUT',
      path: FILE,
      handle: async ({ request, response, url, id, signal }) => {
        const { path } = parse(vmFileQuery, Object.fromEntries(url.searchParams), 'the query');
        const bytes = Number(request.headers['content-length'] ?? Number.NaN);
        if (!Number.isInteger(bytes)) throw new HostError('invalid_request', 'a write needs a Content-Length');

        if (bytes > FILE_WRITE_BYTES)
          throw new HostError('file_too_large', `a file that is written has at most ${FILE_WRITE_BYTES} bytes`);

        try {
          answerJson(
            response,
            200,
            await writeGuestFile(lifecycle.guestOf(id), path, { bytes, content: request }, signal),
          );
        } catch (error) {
          // A caller whose connection is closed while it still sends would not see why.
          await drained(request);
          throw error;
        }
      },
    },
    {
      method: 'GET',
      path: FILES,
      handle: async ({ response, url, id, signal }) => {
        const { path, depth } = parse(vmFilesQuery, Object.fromEntries(url.searchParams), 'the query');
        await sendBytes(await listGuestFiles(lifecycle.guestOf(id), path, depth, signal), response);
      },
    },
  ];
}

/**
 * Resolves when the rest of the body has come, or the caller went away; the server bounds how long
 * that takes.
 */
function drained(request: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    if (request.complete || request.destroyed) {
      resolve();
      return;
    }
    request.once('end', resolve);
    request.once('close', resolve);
    // It may still be on its way to a guest that takes nothing any more.
    request.unpipe();
    request.resume();
  });
}

async function sendBytes(content: Readable, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/octet-stream' });
  await pipeline(content, response);
}
