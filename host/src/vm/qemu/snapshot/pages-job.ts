// What is asked of the thread that copies pages, and what it answers. Plain data.
import type { VmProcess } from '../../driver.ts';
import type { RamBlock } from './ram-blocks.ts';

/** Copies the pages that the process has changed into a new file, and makes it durable. */
export interface CaptureJob {
  kind: 'capture';
  process: VmProcess;
  blocks: RamBlock[];
  path: string;
}

/** Writes the pages of such a file into a process that has its template's memory, and says whether they are what was captured. */
export interface PatchJob {
  kind: 'patch';
  process: VmProcess;
  blocks: RamBlock[];
  path: string;
  memory: MemoryFile;
}

export type PagesJob = CaptureJob | PatchJob;

/** The memory file of a snapshot. */
export interface MemoryFile {
  /** Pages, one after the other. */
  dataBytes: number;
  /** Entries of the table that follows them and says where they belong. */
  runs: number;
  /** Of pages and table. */
  sha256: string;
}

/** `unusable`: the file is not what was captured. `failure`: anything else, as an error's message. */
export type PagesResult = { memory: MemoryFile } | { patched: true } | { unusable: string } | { failure: string };

export interface PagesRequest {
  job: PagesJob;
  /** One 32 bit word, shared: not 0 once the job is to be given up. */
  stop: SharedArrayBuffer;
}
