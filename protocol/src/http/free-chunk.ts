// Frees chunks of bodies as soon as they are used: garbage collection would be most of the work of
// a long body, and starts only after many megabytes.

/** Smaller chunks are left to the garbage collector. */
export const FREED_BYTES = 16_384;

/**
 * Frees a chunk that fills its buffer; it is empty afterwards, as are all views of its memory.
 * Node's pooled small buffers share theirs and are left alone.
 */
export function freeChunk({ buffer, byteLength }: Uint8Array): void {
  if (byteLength >= FREED_BYTES && byteLength === buffer.byteLength && buffer instanceof ArrayBuffer)
    buffer.transfer(0);
}
