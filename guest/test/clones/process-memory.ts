// Searches the memory of a process from outside, for secrets that must not be there. Needs root.
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

const CHUNK_BYTES = 4 * 2 ** 20;

/** The texts found in the writable memory of the process, as UTF-8 or UTF-16. */
export function memoryHolding(pid: number, texts: readonly string[]): string[] {
  const wanted = texts.flatMap((text) =>
    [Buffer.from(text), Buffer.from(text, 'utf16le')].map((bytes) => ({ text, bytes })),
  );
  const overlap = Math.max(...wanted.map(({ bytes }) => bytes.length)) - 1;
  const found = new Set<string>();
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  try {
    for (const [start, end] of writableAreas(pid)) {
      for (let at = start; at < end; at += CHUNK_BYTES) {
        const chunk = readAt(memory, at, Math.min(CHUNK_BYTES + overlap, end - at));
        for (const { text, bytes } of wanted) if (chunk.includes(bytes)) found.add(text);
      }
    }
  } finally {
    closeSync(memory);
  }
  return [...found];
}

function writableAreas(pid: number): [number, number][] {
  const lines = readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n');
  return lines.flatMap((line) => {
    const [, start = '', end = ''] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? [];
    return start === '' || line.endsWith('[vvar]') ? [] : [[Number.parseInt(start, 16), Number.parseInt(end, 16)]];
  });
}

function readAt(memory: number, position: number, bytes: number): Buffer {
  const chunk = Buffer.alloc(bytes);
  return chunk.subarray(0, readSync(memory, chunk, 0, bytes, position));
}
