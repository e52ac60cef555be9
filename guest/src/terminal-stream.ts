// A terminal on its connection: frames in and out (protocol/src/terminal-frames.ts), each side held back by the other.
import type { Duplex } from 'node:stream';
import { TERMINAL_SIGNALS, TERMINAL_SIZE } from '@berth/protocol/guest-limits.ts';
import type { TerminalOrder, TerminalSize } from '@berth/protocol/guest.ts';
import { bytesFrames, controlFrame, FrameFault, FrameReader, TERMINAL_FRAME } from '@berth/protocol/terminal-frames.ts';
import { Refused } from './refused.ts';
import type { Terminal } from './terminals.ts';

/** Resolves when both are over. A caller that goes away, or says what cannot be understood, hangs up. */
export async function carryTerminal(terminal: Terminal, caller: Duplex): Promise<void> {
  const { input, output } = terminal;
  const reader = new FrameReader((kind, content) => {
    if (kind === TERMINAL_FRAME.control) {
      terminal.order(orderOf(content.toString('utf8')));
    } else if (content.length > 0 && !input.write(content)) {
      caller.pause();
      input.once('drain', () => caller.resume());
    }
  });
  const onOutput = (chunk: Buffer): void => {
    if (!caller.write(bytesFrames(chunk))) {
      output.pause();
      caller.once('drain', () => output.resume());
    }
  };
  const hangUp = (): void => {
    terminal.hangUp();
    caller.destroy();
    // What nobody will see must not keep the helper's end from being noticed.
    output.off('data', onOutput);
    output.resume();
  };
  caller.on('error', hangUp);
  caller.once('end', hangUp);
  caller.once('close', hangUp);
  caller.on('data', (chunk: Buffer) => {
    try {
      reader.push(chunk);
    } catch (error) {
      if (!(error instanceof FrameFault)) {
        throw error;
      }
      hangUp();
    }
  });
  output.on('data', onOutput);
  const exit = await terminal.exit;
  caller.off('end', hangUp);
  caller.end(controlFrame({ exit }));
}

/** The size in a query. Throws {@link Refused}. */
export function terminalSizeOf(query: URLSearchParams): TerminalSize {
  const number = (name: string): number => {
    const text = query.get(name) ?? '';
    const value = Number(text);
    if (!/^\d{1,4}$/.test(text) || !isSize(value)) {
      throw new Refused(400, `${name} must be a whole number from ${TERMINAL_SIZE.min} to ${TERMINAL_SIZE.max}`);
    }
    return value;
  };
  return { cols: number('cols'), rows: number('rows') };
}

/** Checked by hand, as every body of the guest wire is. Throws {@link FrameFault}. */
function orderOf(text: string): TerminalOrder {
  const value = parseJson(text);
  if (typeof value === 'object' && value !== null) {
    const { resize, signal } = value as { resize?: Partial<TerminalSize> | null; signal?: unknown };
    if (typeof resize === 'object' && resize !== null && isSize(resize.cols) && isSize(resize.rows)) {
      return { resize: { cols: resize.cols, rows: resize.rows } };
    }
    const known = TERMINAL_SIGNALS.find((name) => name === signal);
    if (known !== undefined) {
      return { signal: known };
    }
  }
  throw new FrameFault('an order that a terminal does not take');
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
