// Requests and results of the thread that copies pages. Plain data.
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import type { RamBlock } from '../machine/ram-blocks.ts';

/** Size of one read or write. */
export const CHUNK_BYTES = 4_194_304;

/** Throws once the job is cancelled. */
export type Stop = () => void;

/** Copies the pages that the process has changed into a new durable file. */
export interface CaptureJob {
  kind: 'capture';
  process: ProcessIdentity;
  blocks: RamBlock[];
  path: string;
  /** Null for a file in plain text. */
  key: Uint8Array | null;
}

/**
 * Writes the pages of such a file into a process that maps its template's memory, and verifies
 * them. Starts reading before the process exists.
 */
export interface PatchJob {
  kind: 'patch';
  path: string;
  memory: MemoryFile;
  /** As in {@link CaptureJob}. */
  key: Uint8Array | null;
}

/** Destination of the pages of a {@link PatchJob}. */
export interface PatchTarget {
  process: ProcessIdentity;
  blocks: RamBlock[];
}

export type PagesJob = CaptureJob | PatchJob;

/** The memory file of a snapshot. */
export interface MemoryFile {
  /** Pages, consecutively. */
  dataBytes: number;
  /** Entries of the table after the pages, which maps them to addresses. */
  runs: number;
  /** Hash of the file. */
  sha256: string;
}

/** `unusable`: the file differs from the capture. `failure`: any other error's message. */
export type PagesResult = { memory: MemoryFile } | { patched: true } | { unusable: string } | { failure: string };

/**
 * Messages to the thread: one job at a time, and the destination of the current job's pages; null
 * cancels it.
 */
export type PagesMessage = PagesRequest | { kind: 'target'; target: PatchTarget | null };

export interface PagesRequest {
  kind: 'job';
  job: PagesJob;
  /** A shared 32-bit word; nonzero once the job is cancelled. */
  stop: SharedArrayBuffer;
}
