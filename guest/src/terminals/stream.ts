// Connects a program to its caller: frames in and out (protocol/src/terminal-frames.ts), with
// back-pressure in both directions.
import type { Duplex } from 'node:stream';
import type { TerminalOrder } from '@berth/protocol/calls/connections.ts';
import { TERMINAL_ORDER } from '@berth/protocol/calls/wire.ts';
import { bytesFrames, controlFrame, FrameFault, FrameReader, TERMINAL_FRAME } from '@berth/protocol/terminal-frames.ts';
import { messageOf } from '@berth/os/errors.ts';
import type { Program } from '../commands/program.ts';
import { checkValue } from '../access/checks.ts';

/** Write interval that detects a disconnect while input is paused, which reads would not. */
const PROBE_MS = 1_000;

/** Resolves when both sides have finished. A disconnect or an invalid frame hangs up. */
export async function relayProgram(program: Program, caller: Duplex): Promise<void> {
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
      // Resume, so that discarded output does not block the program.
      program.resume();
    }
  };
  input.on('drain', letOn);
  // The program has exited or reads no more: further input is dropped.
  input.once('close', letOn);
  caller.on('error', hangUp);
  caller.once('end', hangUp);
  caller.once('close', hangUp);
  caller.on('drain', () => program.resume());
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

/** Throws {@link FrameFault}. */
function orderOf(text: string): TerminalOrder {
  try {
    return checkValue(TERMINAL_ORDER, JSON.parse(text), 'an order') as TerminalOrder;
  } catch (error) {
    throw new FrameFault(messageOf(error));
  }
}
