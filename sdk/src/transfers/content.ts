// Contents of writes, as programs without types pass them too.
import { BerthError } from '../transport/errors.ts';

export type FileData = string | Uint8Array | ArrayBuffer;

/** Throws for other values, such as undefined, which would become an empty file. */
export function bytesOf(path: string | undefined, data: Exclude<FileData, string>): Uint8Array<ArrayBuffer> {
  const given: Exclude<FileData, string> | null | undefined = data;
  const { buffer = data, byteOffset, byteLength } = (given ?? {}) as Partial<Uint8Array>;
  if (byteLength !== undefined) return new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
  const found = given === null ? 'null' : typeof given;
  throw wrong(`cannot write ${path}: the content must be a text or bytes, not ${found}`);
}

export function blobOf(path: string | undefined, data: Blob | FileData): Blob {
  return data instanceof Blob ? data : new Blob([typeof data === 'string' ? data : bytesOf(path, data)]);
}

/** The offset of an append. Throws for a missing one. */
export function offsetOf(path: string, options: { offset: number }): string {
  const given: { offset?: number } | null | undefined = options;
  const offset = given?.offset;
  if (Number.isSafeInteger(offset)) return String(offset);
  throw wrong(`cannot append to ${path}: offset is ${offset}. Pass the file's size, which stat has`);
}

function wrong(message: string): BerthError {
  return new BerthError(message, { code: 'configuration' });
}
