// Context of every action. Connects to the API on demand.
import type { Connection, ConnectionFlags } from '../service/connection.ts';
import type { CallContext } from '../output/report.ts';
import type { Output } from '../output/output.ts';

export interface CliContext {
  readonly environment: Readonly<NodeJS.ProcessEnv>;
  /** Aborts at SIGINT, SIGTERM and SIGHUP. */
  readonly signal: AbortSignal;
  /**
   * Passes signals to `take` instead of aborting: those above, SIGQUIT, SIGUSR1, SIGUSR2 and
   * SIGPIPE. SIGPIPE stands for a closed stdout or stderr and otherwise exits at once. The latest
   * taker wins; returns a function to stop.
   */
  readonly takeSignals: (take: (name: NodeJS.Signals) => void) => () => void;
  readonly out: Output;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly flags: ConnectionFlags;
  /** The call in reports of failures. */
  readonly call: CallContext;
  /** Throws a CliFailure without URL or credential. */
  readonly connect: () => Promise<Connection>;
}
