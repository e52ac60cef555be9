// An attachment of this program to a process.
import type { SandboxProcess } from '@berth/sdk';

export interface Attachment {
  process: SandboxProcess;
  /** First shows so many of the last bytes of each stream. */
  tail: number;
  /** Pass stdin. */
  interactive: boolean;
  /** Aborts when berth leaves before the end of the process. */
  signal: AbortSignal;
  leave: (reason: unknown) => void;
}

/** Reason of a leave that the user asked for. */
export class Detached extends Error {
  override readonly name = 'Detached';
}
