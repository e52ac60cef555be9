// What every action gets. The connection to the API is made when it is first asked for, so that what needs none works without one.
import type { Connection, ConnectionFlags } from './connection/connection.ts';
import type { Output } from './output/output.ts';

export interface CliContext {
  readonly environment: Readonly<NodeJS.ProcessEnv>;
  /** Aborts at SIGINT, SIGTERM and SIGHUP. */
  readonly signal: AbortSignal;
  readonly out: Output;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** `--profile`, `--url`, `--org` and `--project` as they were typed. */
  readonly flags: ConnectionFlags;
  /** Where the API is, as whom it is called, and its client. Throws a CliFailure when nothing says it. */
  readonly connect: () => Promise<Connection>;
}
