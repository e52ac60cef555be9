// Context of every verb: configuration, progress on stderr, environment, and a signal that aborts
// on the operator's request.
import type { Config } from '../config/config.ts';
import type { Progress } from '../output/progress.ts';

export interface VerbContext {
  config: Config;
  progress: Progress;
  environment: Readonly<NodeJS.ProcessEnv>;
  /** Aborts at SIGINT and SIGTERM. */
  signal: AbortSignal;
  /** Prints the verb's result on stdout. */
  print: (line: string) => void;
}
