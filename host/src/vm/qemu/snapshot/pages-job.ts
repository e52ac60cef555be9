// What is asked of the thread that copies pages, and what it answers. Plain data.
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import type { RamBlock } from './ram-blocks.ts';

/** What is read and written at once. */
export const CHUNK_BYTES = 4_194_304;

/** Throws once the job is to be given up. */
export type Stop = () => void;

/** Copies the pages that the process has changed into a new file, and makes it durable. */
export interface CaptureJob {
  kind: 'capture';
  process: ProcessIdentity;
  blocks: RamBlock[];
  path: string;
}

/**
 * Writes the pages of such a file into a process that has its template's memory, and says whether
 * they are what was captured. Begins to read before there is one.
 */
export interface PatchJob {
  kind: 'patch';
  path: string;
  memory: MemoryFile;
}

/** Where the pages of a {@link PatchJob} belong. */
export interface PatchTarget {
  process: ProcessIdentity;
  blocks: RamBlock[];
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

/**
 * `unusable`: the file is not what was captured. `failure`: anything else, as an error's message.
 */
export type PagesResult = { memory: MemoryFile } | { patched: true } | { unusable: string } | { failure: string };

/**
 * What the thread is told: one job at a time, and where the pages of the one under way belong; null
 * when it is given up.
 */
export type PagesMessage = PagesRequest | { kind: 'target'; target: PatchTarget | null };

export interface PagesRequest {
  kind: 'job';
  job: PagesJob;
  /** One 32 bit word, shared: not 0 once the job is to be given up. */
  stop: SharedArrayBuffer;
}
