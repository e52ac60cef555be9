// Output of a process as text where it is text, and the cursor behind it. Pure.
import type { ProcessOutputChunk } from '@berth/contract/commands/processes.ts';
import { invalidField, type CodedError } from '../coded-error.ts';
import { contentOfBytes } from '../files/content.ts';

type StreamName = ProcessOutputChunk['stream'];

/** Offsets of the next byte of each stream. */
type Offsets = { readonly [stream in StreamName]?: number | undefined };

interface Piece {
  stream: StreamName;
  offset: number;
  bytes: Buffer;
}

const PIPES = ['stdout', 'stderr'] as const;

/** Without a cursor: the start of all streams, of which a process has some. */
export function offsetsOf(cursor: string | undefined): Offsets {
  if (cursor === undefined) return { stdout: 0, stderr: 0, output: 0 };
  const [first = 0, second] = cursor.split('.').map(Number);
  if (Math.max(first, second ?? 0) > Number.MAX_SAFE_INTEGER) throw invalidCursor();
  return second === undefined ? { output: first } : { stdout: first, stderr: second };
}

/** Whether the cursor is one of a terminal, which has one stream. */
export function isOfTerminal(cursor: string): boolean {
  return !cursor.includes('.');
}

export function invalidCursor(): CodedError {
  return invalidField('query.since', 'must be the cursor of a response for this process');
}

export function cursorOf(offsets: Offsets, tty: boolean): string {
  return tty ? String(offsets.output ?? 0) : PIPES.map((stream) => offsets[stream] ?? 0).join('.');
}

/**
 * The chunk of a piece, and the offset behind it; `from`: what was asked for. The beginning of a
 * character at the end is left for the next piece, unless it is all.
 */
export function chunkOf(
  { stream, offset, bytes }: Piece,
  from: number,
): { chunk: Omit<ProcessOutputChunk, 'cursor'>; next: number } {
  const whole = bytes.subarray(0, bytes.length - partialCharacter(bytes));
  const { content, encoding } = contentOfBytes(whole.length === 0 ? bytes : whole);
  const isText = encoding === 'utf8';
  const data = isText ? content : bytes.toString('base64');
  const next = offset + (isText ? whole.length : bytes.length);
  return { chunk: { stream, offset, lostBytes: offset - from, data, encoding }, next };
}

/** Whether the piece is only the beginning of a character. */
export function isPartialCharacter({ bytes }: Pick<Piece, 'bytes'>): boolean {
  return bytes.length > 0 && partialCharacter(bytes) === bytes.length;
}

/** Bytes at the end that begin a character of which more follow. */
function partialCharacter(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needed > back ? back : 0;
  }
  return 0;
}
