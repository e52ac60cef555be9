// Which pages of a mapping its process has changed, from the kernel's page map. Pure.

export const PAGE_BYTES = 4_096;
/** The page map has one word of 64 bits for each page. */
export const PAGEMAP_ENTRY_BYTES = 8;

/**
 * Bits of the upper half of an entry (Documentation/admin-guide/mm/pagemap.rst): 63 present, 62
 * swapped out, 61 of a file or shared.
 */
const PRESENT_OR_SWAPPED = 0xc000_0000;
const OF_A_FILE = 0x2000_0000;

/** Pages that follow one another; numbers count from the start of their mapping. */
export interface PageRun {
  firstPage: number;
  pages: number;
}

/**
 * The pages of a private mapping that are its process's own: for a mapping of a file, those it has
 * written to since; for one of nothing, those it has touched. `halves` are the entries as pairs of
 * 32 bit words, the lower first.
 */
export function ownPages(halves: Uint32Array, firstPage: number): PageRun[] {
  const runs: PageRun[] = [];
  const count = halves.length / 2;
  let start = -1;
  for (let page = 0; page <= count; page += 1) {
    // Read past the end: undefined counts as no bit set.
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
 * The memory file of a snapshot ends with one entry for each run: number of the block, first page,
 * pages; 32 bits each, little-endian.
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

/** Null for a table that names pages outside of the blocks, or more or fewer than there are. */
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
