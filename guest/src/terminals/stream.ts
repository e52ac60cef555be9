// A program on its caller's connection: frames in and out (protocol/src/terminal-frames.ts), each
// side held back by the other.
import type { Duplex } from 'node:stream';
import { EXEC_COMMAND_LENGTH, TERMINAL_SIGNALS, TERMINAL_SIZE } from '@berth/protocol/guest-limits.ts';
import type { TerminalAsked, TerminalOrder, TerminalSize } from '@berth/protocol/guest.ts';
import { bytesFrames, controlFrame, FrameFault, FrameReader, TERMINAL_FRAME } from '@berth/protocol/terminal-frames.ts';
import type { Program } from '../commands/program.ts';
import { Refused } from '../access/refused.ts';

/**
 * A connection that is not read does not tell that it broke: while the program takes no input,
 * something is written this often, which then fails.
 */
const PROBE_MS = 1_000;

/**
 * Resolves when both are over. A caller that goes away, or says what cannot be understood, hangs
 * up.
 */
export async function carryProgram(program: Program, caller: Duplex): Promise<void> {
  const { input } = program;
  let gone = false;
  let probe: NodeJS.Timeout | undefined;
  const reader = new FrameReader((kind, content) => {
    if (kind === TERMINAL_FRAME.control) {
      if (!program.order(orderOf(content.toString('utf8')))) throw new FrameFault('an order that this does not take');
    } else if (content.length > 0 && input.writable) {
      input.write(content);
    }
  });
  const holdBack = (): void => {
    caller.pause();
    probe ??= setInterval(() => {
      if (caller.writable && !caller.writableNeedDrain) caller.write(bytesFrames(new Uint8Array(0)));
    }, PROBE_MS);
  };
  const letOn = (): void => {
    clearInterval(probe);
    probe = undefined;
    caller.resume();
  };
  const hangUp = (): void => {
    if (!gone) {
      gone = true;
      clearInterval(probe);
      program.hangUp();
      caller.destroy();
      // What nobody will see must not hold it back.
      program.goOn();
    }
  };
  input.on('drain', letOn);
  // It has ended, or reads no more: whatever comes for it is dropped.
  input.once('close', letOn);
  caller.on('error', hangUp);
  caller.once('end', hangUp);
  caller.once('close', hangUp);
  caller.on('drain', () => program.goOn());
  caller.on('data', (chunk: Buffer) => {
    input.cork();
    try {
      reader.push(chunk);
    } catch (error) {
      if (!(error instanceof FrameFault)) throw error;

      hangUp();
    } finally {
      input.uncork();
    }
    if (input.writableNeedDrain && !input.destroyed) holdBack();
  });
  program.outputTo((frames) => gone || caller.write(frames));
  const ended = await program.ended;
  caller.off('end', hangUp);
  caller.off('close', hangUp);
  letOn();
  caller.end(controlFrame(ended));
}

/** What a query asks for. Throws {@link Refused}. */
export function terminalAskedOf(query: URLSearchParams): TerminalAsked {
  const command = query.get('command');
  if (command !== null && (command.length === 0 || command.length > EXEC_COMMAND_LENGTH))
    throw new Refused(400, `command must be a string of 1 to ${EXEC_COMMAND_LENGTH} characters`);

  if (query.get('tty') === 'false') {
    if (command === null) throw new Refused(400, 'without a terminal there must be a command');

    return { tty: false, command };
  }
  const side = (name: string): number => {
    const text = query.get(name) ?? '';
    const value = Number(text);
    if (!/^\d{1,4}$/.test(text) || !isSize(value))
      throw new Refused(400, `${name} must be a whole number from ${TERMINAL_SIZE.min} to ${TERMINAL_SIZE.max}`);

    return value;
  };
  return { tty: true, cols: side('cols'), rows: side('rows'), command };
}

/** Checked by hand, as every body of the guest wire is. Throws {@link FrameFault}. */
function orderOf(text: string): TerminalOrder {
  const value = parseJson(text);
  if (typeof value === 'object' && value !== null) {
    const { resize, signal, end } = value as { resize?: Partial<TerminalSize> | null; signal?: unknown; end?: unknown };
    if (typeof resize === 'object' && resize !== null && isSize(resize.cols) && isSize(resize.rows))
      return { resize: { cols: resize.cols, rows: resize.rows } };

    if (end === true) return { end };

    const known = TERMINAL_SIGNALS.find((name) => name === signal);
    if (known !== undefined) return { signal: known };
  }
  throw new FrameFault('an order that is none');
}

function isSize(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= TERMINAL_SIZE.min && (value as number) <= TERMINAL_SIZE.max;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new FrameFault(error instanceof Error ? error.message : String(error));
  }
}
