// Finds the pages of a mapping that its process has changed, from the kernel's page map. Pure.

export const PAGE_BYTES = 4_096;
/** The page map has one 64-bit word per page. */
export const PAGEMAP_ENTRY_BYTES = 8;

/**
 * Bits of the upper half of an entry (Documentation/admin-guide/mm/pagemap.rst): 63 present, 62
 * swapped, 61 file-backed or shared.
 */
const PRESENT_OR_SWAPPED = 0xc000_0000;
const OF_A_FILE = 0x2000_0000;

/** Consecutive pages; numbers count from the start of their mapping. */
interface PageRun {
  firstPage: number;
  pages: number;
}

/**
 * Pages of a private mapping owned by its process: written pages of a file mapping, touched pages
 * of an anonymous one. `halves` holds the entries as pairs of 32-bit words, lower half first.
 */
export function ownPages(halves: Uint32Array, firstPage: number): PageRun[] {
  const runs: PageRun[] = [];
  const count = halves.length / 2;
  let start = -1;
  for (let page = 0; page <= count; page += 1) {
    // Past the end: undefined counts as no bits set.
    const upper = halves[2 * page + 1] ?? 0;
    const own = (upper & PRESENT_OR_SWAPPED) !== 0 && (upper & OF_A_FILE) === 0;
    if (own && start < 0) {
      start = page;
    } else if (!own && start >= 0) {
      runs.push({ firstPage: firstPage + start, pages: page - start });
      start = -1;
    }
  }
  return runs;
}

/**
 * The memory file ends with one entry per run: block number, first page, pages; 32 bits each,
 * little-endian.
 */
export const RUN_ENTRY_BYTES = 12;

export interface BlockRun extends PageRun {
  block: number;
}

export function encodeRuns(runs: readonly BlockRun[]): Buffer {
  const table = Buffer.alloc(runs.length * RUN_ENTRY_BYTES);
  for (const [at, { block, firstPage, pages }] of runs.entries()) {
    table.writeUInt32LE(block, at * RUN_ENTRY_BYTES);
    table.writeUInt32LE(firstPage, at * RUN_ENTRY_BYTES + 4);
    table.writeUInt32LE(pages, at * RUN_ENTRY_BYTES + 8);
  }
  return table;
}

/** Null for a table that names pages outside the blocks, or a wrong number of pages. */
export function decodeRuns(table: Buffer, blockSizesBytes: readonly number[], dataBytes: number): BlockRun[] | null {
  const runs: BlockRun[] = [];
  let pages = 0;
  for (let at = 0; at + RUN_ENTRY_BYTES <= table.length; at += RUN_ENTRY_BYTES) {
    const run = {
      block: table.readUInt32LE(at),
      firstPage: table.readUInt32LE(at + 4),
      pages: table.readUInt32LE(at + 8),
    };
    const sizeBytes = blockSizesBytes[run.block] ?? 0;
    if (run.pages === 0 || (run.firstPage + run.pages) * PAGE_BYTES > sizeBytes) return null;

    pages += run.pages;
    runs.push(run);
  }
  return pages * PAGE_BYTES === dataBytes ? runs : null;
}
