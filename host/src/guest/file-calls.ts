// File calls of a guest (protocol/src/files.ts): contents and listings pass through as they come,
// bounded in bytes and time. What a guest says of a refusal is a code of the protocol's table, or
// the guest is out of order.
import type { Readable } from 'node:stream';
import {
  FILE_CALL_SECONDS,
  FILE_LIST_MAX_BYTES,
  FILE_READ_BYTES,
  fileWritten,
  guestFileError,
  type FileWritten,
} from '@berth/protocol/files.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import { readAtMost } from '@berth/os/bounded-body.ts';
import { HostError } from '../vm/host-error.ts';
import type { GuestClient, Upload } from './client.ts';

/**
 * Beyond the guest's own time: connection, and the content itself. Less than the control plane
 * grants.
 */
const DEADLINE_MS = FILE_CALL_SECONDS * 1_000 + 10_000;
const SMALL_ANSWER_BYTES = 4_096;

/** The bytes of a file. */
export async function readGuestFile(guest: GuestClient, path: string, signal: AbortSignal): Promise<Readable> {
  return guest.stream({
    method: 'GET',
    path: `/file?${queryOf({ path })}`,
    maxBytes: FILE_READ_BYTES,
    ...common(signal),
  });
}

/** A listing of `depth` levels, as the guest sends it. */
export async function listGuestFiles(
  guest: GuestClient,
  path: string,
  depth: number,
  signal: AbortSignal,
): Promise<Readable> {
  const query = queryOf({ path, depth: String(depth) });
  return guest.stream({ method: 'GET', path: `/files?${query}`, maxBytes: FILE_LIST_MAX_BYTES, ...common(signal) });
}

/**
 * Writes a file whole or not at all. The content stays the caller's, as in {@link
 * GuestClient.stream}.
 */
export async function writeGuestFile(
  guest: GuestClient,
  path: string,
  upload: Upload,
  signal: AbortSignal,
): Promise<FileWritten> {
  const call = {
    method: 'PUT',
    path: `/file?${queryOf({ path })}`,
    maxBytes: SMALL_ANSWER_BYTES,
    upload,
    ...common(signal),
  } as const;
  const text = await readAtMost(await guest.stream(call), SMALL_ANSWER_BYTES);
  const written = fileWritten.safeParse(parseJson(text));
  if (!written.success || written.data.size !== upload.bytes)
    throw new HostError('guest_unreachable', "PUT /file: the guest's answer is not of its protocol");

  return written.data;
}

function common(signal: AbortSignal) {
  return { signal, deadlineMs: DEADLINE_MS, refusal: refusalOf };
}

function queryOf(parameters: Record<string, string>): string {
  return new URLSearchParams(parameters).toString();
}

function refusalOf(_status: number, text: string): HostError | null {
  const parsed = guestFileError.safeParse(parseJson(text));
  if (!parsed.success) return null;

  const { code, errno } = parsed.data.error;
  return new HostError(code, `the guest refused the call: ${errno ?? code}`, { errno });
}
