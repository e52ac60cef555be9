// What every action gets. The connection to the API is made when it is first asked for, so that
// what needs none works without one.
import type { Connection, ConnectionFlags } from '../service/connection.ts';
import type { Output } from '../output/output.ts';

export interface CliContext {
  readonly environment: Readonly<NodeJS.ProcessEnv>;
  /** Aborts at SIGINT, SIGTERM and SIGHUP. */
  readonly signal: AbortSignal;
  /**
   * From now on signals to this process go to `take` in place of aborting: those above, SIGQUIT,
   * SIGUSR1, SIGUSR2, and SIGPIPE, which here says that a reader of stdout or stderr has gone
   * (otherwise that ends the process at once). The last one to take them has them; gives what
   * undoes it.
   */
  readonly takeSignals: (take: (name: NodeJS.Signals) => void) => () => void;
  readonly out: Output;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** `--profile`, `--url`, `--org` and `--project` as they were typed. */
  readonly flags: ConnectionFlags;
  /**
   * Where the API is, as whom it is called, and its client. Throws a CliFailure when nothing says
   * it.
   */
  readonly connect: () => Promise<Connection>;
}
