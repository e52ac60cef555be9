// This terminal joined with one in a sandbox: keys and what is shown as they are, the size, the
// end, and the terminal as it was before afterwards.
import { spawnSync } from 'node:child_process';
import type { SandboxTerminal, TerminalSize } from '@berth/sdk';
import { TERMINAL_DEFAULT_SIZE, TERMINAL_SIDE } from '@berth/sdk/limits';
import { CliFailure, EXIT_BY_SIGNAL } from '../output/failure.ts';
import { writeAll } from './streams.ts';

interface TerminalEnds {
  /** null: nothing is typed; the terminal stays as it is, and its keys do here what they do. */
  stdin: NodeJS.ReadStream | null;
  stdout: NodeJS.WriteStream;
}

/**
 * As the contract takes it: a terminal that does not know its own size says 0, and what is none
 * says nothing.
 */
export function sizeOf({ columns, rows }: { columns?: number; rows?: number }): TerminalSize {
  const side = (length: number | undefined, otherwise: number): number =>
    Math.min(length === undefined || length < TERMINAL_SIDE.min ? otherwise : length, TERMINAL_SIDE.max);
  return { cols: side(columns, TERMINAL_DEFAULT_SIZE.cols), rows: side(rows, TERMINAL_DEFAULT_SIZE.rows) };
}

/**
 * Keys come as they are typed, and what is written is shown as it is. The terminal's end of raw
 * mode takes both back.
 */
function makeRaw(stdin: NodeJS.ReadStream): void {
  stdin.setRawMode(true);
  // Node's raw mode leaves this on: a line feed would go to the first column, also for a program
  // that wants the cursor down alone.
  spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
}

/**
 * Resolves with the exit code. The terminal is as it was before when this settles. Its own hang-up
 * hangs the other one up.
 */
export async function joinTerminal(terminal: SandboxTerminal, { stdin, stdout }: TerminalEnds): Promise<number> {
  const keys = terminal.writable.getWriter();
  const onResize = (): void => terminal.resize(sizeOf(stdout));
  const onKeys = (chunk: Buffer): void => {
    keys.write(chunk).catch(() => undefined);
    if ((keys.desiredSize ?? 0) > 0) return;
    stdin?.pause();
    keys.ready.then(
      () => stdin?.resume(),
      () => undefined,
    );
  };
  const { promise: gone, reject: hangUp } = Promise.withResolvers<never>();
  const onHangUp = (): void => hangUp(new CliFailure('the terminal is gone', { exitCode: EXIT_BY_SIGNAL.SIGHUP }));
  stdout.once('error', onHangUp);
  stdout.on('resize', onResize);
  if (stdin !== null) {
    stdin.on('data', onKeys);
    stdin.once('end', onHangUp);
    stdin.once('error', onHangUp);
    makeRaw(stdin);
  }
  // It may have changed since it was asked for.
  onResize();
  try {
    return await Promise.race([shown(terminal, stdout), gone]);
  } finally {
    terminal.close();
    stdout.off('resize', onResize);
    if (stdin !== null) {
      stdin.off('data', onKeys);
      if (!stdin.destroyed) stdin.setRawMode(false);
      // Nothing keeps this process any more.
      stdin.destroy();
    }
  }
}

/** Shows what comes; resolves with the exit code. */
async function shown(terminal: SandboxTerminal, stdout: NodeJS.WriteStream): Promise<number> {
  const written = writeAll(terminal.readable, stdout);
  written.catch(() => undefined);
  const { exitCode } = await terminal.exited;
  await written;
  return exitCode;
}
