// This terminal joined with one in a sandbox: keys and what is shown as they are, the size, the
// end, and the terminal as it was before afterwards.
import { spawnSync } from 'node:child_process';
import { TERMINAL_DEFAULT_SIZE, TERMINAL_SIDE } from '@berth/sdk/limits';
import { terminalExit } from '@berth/contract/connections/terminal.ts';
import { WEBSOCKET_CLOSE } from '@berth/contract/connections/websocket.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import type { WebSocket } from 'ws';
import { CliFailure, EXIT_BY_SIGNAL } from '../output/failure.ts';
import { closedFailure } from './websocket.ts';

const UNSENT_BYTES = 1_048_576;

export interface TerminalEnds {
  /** null: nothing is typed; the terminal stays as it is, and its keys do here what they do. */
  stdin: NodeJS.ReadStream | null;
  stdout: NodeJS.WriteStream;
}

/**
 * As the contract takes it: a terminal that does not know its own size says 0, and what is none
 * says nothing.
 */
export function sizeOf({ columns, rows }: { columns?: number; rows?: number }): { cols: number; rows: number } {
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
 * Resolves with the exit code. The terminal is as it was before when this settles. Its own hang-up,
 * and a signal, hang the other one up.
 */
export async function joinTerminal(
  socket: WebSocket,
  { stdin, stdout }: TerminalEnds,
  signal: AbortSignal,
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  let exit: number | undefined;
  const onResize = (): void => socket.send(JSON.stringify({ resize: sizeOf(stdout) }), { binary: false });
  const onKeys = (keys: Buffer): void => {
    socket.send(keys, { binary: true }, () => {
      if (socket.bufferedAmount <= UNSENT_BYTES / 2) stdin?.resume();
    });
    if (socket.bufferedAmount > UNSENT_BYTES) stdin?.pause();
  };
  const onAbort = (): void => {
    reject(signal.reason);
    socket.terminate();
  };
  const onHangUp = (): void => {
    reject(new CliFailure('the terminal is gone', { exitCode: EXIT_BY_SIGNAL.SIGHUP }));
    socket.terminate();
  };
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) {
      if (stdout.write(data)) return;
      socket.pause();
      stdout.once('drain', () => socket.resume());
      return;
    }
    const said = terminalExit.safeParse(parseJson(data.toString('utf8')));
    if (said.success) ({ exit } = said.data);
  });
  socket.once('close', (code, reason) => {
    if (code === WEBSOCKET_CLOSE.ended && exit !== undefined) resolve(exit);
    else reject(closedFailure('the terminal', code, reason));
  });
  signal.addEventListener('abort', onAbort, { once: true });
  stdout.once('error', onHangUp);
  stdout.on('resize', onResize);
  if (stdin !== null) {
    stdin.on('data', onKeys);
    stdin.once('end', onHangUp);
    stdin.once('error', onHangUp);
    makeRaw(stdin);
  }
  socket.resume();
  // It may have changed since it was asked for.
  onResize();
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
    stdout.off('resize', onResize);
    if (stdin !== null) {
      stdin.off('data', onKeys);
      if (!stdin.destroyed) stdin.setRawMode(false);
      // Nothing keeps this process any more.
      stdin.destroy();
    }
  }
}
