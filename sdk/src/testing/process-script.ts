// Scripts that play the processes of the test server.
import type { Sandbox, StartProcessRequest } from '../generated/raw/index.ts';
import type { Signal } from '../streams/program.ts';

/** End of a process. A number is an exit code; by default 0. */
export type TestProcessEnd =
  | number
  | { exitCode?: number; signal?: string; reason?: 'timed_out' | 'out_of_memory' | 'lost' };

/** A process, for its script. */
export interface TestProcess {
  readonly id: string;
  /** Its shell line, or its arguments with spaces between them. */
  readonly command: string;
  /** The request that started it. */
  readonly request: StartProcessRequest;
  readonly sandbox: Sandbox;
  /** Aborts when the process ends before its script: killed, removed or lost. */
  readonly signal: AbortSignal;
  /** Its input as it arrives, until it is closed. */
  readonly stdin: AsyncIterable<Uint8Array>;
  /** Writes to stdout, or to its terminal. */
  readonly stdout: (output: string | Uint8Array) => void;
  /** Writes to stderr, or to its terminal. */
  readonly stderr: (output: string | Uint8Array) => void;
  /** Takes all later signals except SIGKILL. By default, they end the process. */
  readonly onSignal: (handler: (signal: Signal) => void) => void;
  /** Ends it before its script, which writes on like a program in the background. */
  readonly end: (end?: TestProcessEnd) => void;
}

/**
 * Plays a process, which ends with the returned value, or with 1 if it throws. Its output is
 * complete then.
 */
export type ProcessScript = (
  process: TestProcess,
) => TestProcessEnd | undefined | void | Promise<TestProcessEnd | undefined | void>;
