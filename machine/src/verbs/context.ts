// What every verb gets: the configuration, the progress on stderr, the environment, and a signal
// that aborts when the operator wants out.
import type { Config } from '../config/config.ts';
import type { Progress } from '../output/progress.ts';

export interface VerbContext {
  config: Config;
  progress: Progress;
  environment: Readonly<NodeJS.ProcessEnv>;
  /** Aborts at SIGINT and SIGTERM. */
  signal: AbortSignal;
  /** The verb's result, on stdout. */
  print: (line: string) => void;
}
