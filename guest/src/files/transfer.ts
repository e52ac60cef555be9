// The content of a file of any length, over the stream of the call `openFile`
// (protocol/src/calls/files.ts).
import type { Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { firstLine } from '@berth/protocol/http/first-line.ts';
import { exactly } from '@berth/protocol/http/serve.ts';
import type { Files, OpenFile } from './files.ts';
import { FileRefused } from './refused.ts';

const ORDER_BYTES = 64;

/** Sends the length and the content; a truncated content breaks the stream. */
export async function sendContent(caller: Duplex, bytes: number, content: Readable): Promise<void> {
  caller.resume();
  caller.write(`${bytes}\n`);
  await pipeline(content, exactly(bytes), caller);
}

/** Offers a file, and sends the part that the caller then wants. */
export async function sendPart(caller: Duplex, file: OpenFile): Promise<void> {
  caller.once('close', () => file.close());
  try {
    caller.write(`${file.offer}\n`);
    const [, first, length] = /^(\d{1,16}) (\d{1,16})$/.exec(await firstLine(caller, ORDER_BYTES)) ?? [];
    if (length === undefined || Number(first) + Number(length) > file.size) throw new Error('no part of the file');
    caller.resume();
    await pipeline(file.take(Number(first), Number(length)), exactly(Number(length)), caller);
  } catch {
    // The caller wants no part, or the content broke off.
    caller.destroy();
  }
}

interface Target {
  path: string;
  bytes: number;
  /** Appends to a file of this size, rather than writing one as a whole. */
  offset?: number | undefined;
  ifUnchanged?: string | undefined;
  mode?: string | undefined;
}

/** Writes the content that the caller sends, and sends the outcome. */
export async function receiveContent(
  files: Files,
  caller: Duplex,
  { path, offset, ...upload }: Target,
  gone: AbortSignal,
): Promise<void> {
  const { bytes } = upload;
  const early = new AbortController();
  let arrived = 0;
  // Until the helper takes it.
  caller.pause();
  caller.on('data', (chunk: Buffer) => (arrived += chunk.length));
  caller.once('end', () => {
    if (arrived < bytes) early.abort(new Error('the content ended early'));
  });
  let outcome: object;
  try {
    const signal = AbortSignal.any([gone, early.signal]);
    if (offset === undefined) await files.write(path, { ...upload, content: caller }, signal, true);
    else await files.append(path, { ...upload, offset, content: caller }, signal);
    outcome = { size: (offset ?? 0) + bytes };
  } catch (error) {
    if (!(error instanceof FileRefused)) {
      // Without an outcome: the caller cannot mistake it for a refusal.
      caller.destroy();
      return;
    }
    const { code, errno, size } = error;
    outcome = { error: { code, errno, size } };
  }
  caller.resume();
  caller.end(`${JSON.stringify(outcome)}\n`);
}
