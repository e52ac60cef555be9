// The supervisor's interface to a service, before and after its start.
import type { ProcessIdentity } from '@berth/os/process-identity.ts';

export interface RunningService {
  process: ProcessIdentity;
  /** Resolves with the exit description. Never rejects. */
  exited: Promise<string>;
  /** Shuts it down, by force if necessary; resolves when it is gone. Idempotent. */
  stop(): Promise<void>;
}

export interface Service {
  name: string;
  /**
   * Starts it and resolves when it responds. Rejects if it exits or does not respond in time;
   * nothing of it runs then. `onOutput` receives its log. An abort of `signal` cancels the start.
   */
  start(onOutput: (chunk: Buffer) => void, signal: AbortSignal): Promise<RunningService>;
}
