// Connects the local terminal to one in a sandbox: keys, output and size. Restores it afterwards.
import { spawnSync } from 'node:child_process';
import type { TerminalSize } from '@berth/sdk';
import { TERMINAL_DEFAULT_SIZE, TERMINAL_SIDE } from '@berth/sdk/limits';
import { CliFailure, EXIT_BY_SIGNAL } from '../output/failure.ts';
import { writeAll } from './streams.ts';

/** A terminal in a sandbox. */
interface RemoteTerminal {
  readable: AsyncIterable<Uint8Array>;
  writable: WritableStream<Uint8Array | string>;
  exited: Promise<{ exitCode: number }>;
  resize(size: TerminalSize): void;
  close(): void;
}

interface TerminalEnds {
  /** null: no input; the terminal keeps its mode, and its keys act locally. */
  stdin: NodeJS.ReadStream | null;
  stdout: NodeJS.WriteStream;
}

/**
 * Terminal size within the contract's limits. A terminal of unknown size reports 0; other streams
 * report undefined.
 */
export function sizeOf({ columns, rows }: { columns?: number; rows?: number }): TerminalSize {
  const side = (length: number | undefined, otherwise: number): number =>
    Math.min(length === undefined || length < TERMINAL_SIDE.min ? otherwise : length, TERMINAL_SIDE.max);
  return { cols: side(columns, TERMINAL_DEFAULT_SIZE.cols), rows: side(rows, TERMINAL_DEFAULT_SIZE.rows) };
}

/** Raw mode for input and output. Leaving raw mode restores both. */
function makeRaw(stdin: NodeJS.ReadStream): void {
  stdin.setRawMode(true);
  // Node's raw mode keeps output processing: a line feed would also return to the first column.
  spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
}

/**
 * Resolves with the exit code, after restoring the terminal. A hang-up closes the remote terminal.
 */
export async function joinTerminal(terminal: RemoteTerminal, { stdin, stdout }: TerminalEnds): Promise<number> {
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
  const onHangUp = (): void =>
    hangUp(new CliFailure('the local terminal was closed', { exitCode: EXIT_BY_SIGNAL.SIGHUP }));
  stdout.once('error', onHangUp);
  stdout.on('resize', onResize);
  if (stdin !== null) {
    stdin.on('data', onKeys);
    stdin.once('end', onHangUp);
    stdin.once('error', onHangUp);
    makeRaw(stdin);
  }
  // The size may have changed since the request.
  onResize();
  try {
    return await Promise.race([shown(terminal, stdout), gone]);
  } finally {
    terminal.close();
    stdout.off('resize', onResize);
    if (stdin !== null) {
      stdin.off('data', onKeys);
      if (!stdin.destroyed) stdin.setRawMode(false);
      // An open stdin would keep the process alive.
      stdin.destroy();
    }
  }
}

/** Prints the output; resolves with the exit code. */
async function shown(terminal: RemoteTerminal, stdout: NodeJS.WriteStream): Promise<number> {
  const written = writeAll(terminal.readable, stdout);
  written.catch(() => undefined);
  const { exitCode } = await terminal.exited;
  await written;
  return exitCode;
}
