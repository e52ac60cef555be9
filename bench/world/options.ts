// Options of a benchmark.
import { basename } from 'node:path';
import type { ParseArgsOptionsConfig } from 'node:util';
import { readOptions as readProgramOptions } from '../../e2e/world/options.ts';

/** Options of this process. Exits after `--help`, and with an error after an option not allowed. */
export function readOptions<const T extends ParseArgsOptionsConfig>(options: T) {
  return readProgramOptions(`berth bench ${basename(process.argv[1] ?? '', '.ts')}`, options);
}
