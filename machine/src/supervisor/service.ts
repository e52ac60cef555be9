// What the supervisor knows of a service: how to start it, and what it started.
import type { ProcessIdentity } from '@berth/os/process-identity.ts';

export interface RunningService {
  process: ProcessIdentity;
  /** Resolves with how it ended. Never rejects. */
  exited: Promise<string>;
  /** Ends it in order, by force when it does not leave; resolves when it is gone. Idempotent. */
  stop(): Promise<void>;
}

export interface Service {
  name: string;
  /**
   * Starts it and resolves when it answers. Rejects when it ends or does not answer in time, and
   * nothing of it runs then. `onOutput` gets its log. `signal` aborts when it is no longer wanted.
   */
  start(onOutput: (chunk: Buffer) => void, signal: AbortSignal): Promise<RunningService>;
}
