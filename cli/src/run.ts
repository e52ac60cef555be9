// One run of the program with the streams and words of this process.
import { runProgram } from './program/program.ts';
import type { Chapter } from './program/command-spec.ts';
import manifest from '../package.json' with { type: 'json' };

/** 128 + SIGPIPE. */
const READER_GONE = 141;

/** Sets the exit code; the process ends when nothing is left to do. */
export async function run(chapters: readonly Chapter[]): Promise<void> {
  const { stdin, stdout, stderr } = process;
  // Who read the output has gone, as `head` does: that is no failure to tell of.
  for (const stream of [stdout, stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // A pipe that nobody reads any more; a terminal that was taken away.
      if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
      // An action that has something to take back listens (CliContext.takeSignals).
      if (!process.emit('SIGPIPE', 'SIGPIPE')) process.exit(READER_GONE);
    });
  }
  const options = { chapters, version: manifest.version, streams: { stdin, stdout, stderr }, environment: process.env };
  const [first, ...words] = process.argv.slice(2);
  if (first === '__complete') {
    const { complete } = await import('./completion/complete.ts');
    await complete(words, options);
    return;
  }
  process.exitCode = await runProgram(first === undefined ? [] : [first, ...words], options);
}
