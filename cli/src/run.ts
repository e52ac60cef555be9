// Runs the program with this process's arguments and streams.
import { runProgram } from './program/program.ts';
import type { Chapter } from './program/command-spec.ts';
import manifest from '../package.json' with { type: 'json' };

/** 128 + SIGPIPE. */
const READER_GONE = 141;

/** Sets the exit code; the process exits when the event loop is empty. */
export async function run(chapters: readonly Chapter[]): Promise<void> {
  const { stdin, stdout, stderr } = process;
  // A reader that exits early, such as `head`, is not a failure.
  for (const stream of [stdout, stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // EIO: the terminal was closed.
      if (error.code !== 'EPIPE' && error.code !== 'EIO') throw error;
      // Listeners of CliContext.takeSignals clean up first.
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
