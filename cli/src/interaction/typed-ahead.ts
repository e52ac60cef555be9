// Discards what was typed before a question was shown.
import { closeSync, constants, openSync, readSync } from 'node:fs';

/** Reads the terminal of this process until nothing is left. Leaves raw mode off. */
export function discardTyped(stdin: NodeJS.ReadStream): void {
  // Raw mode makes unfinished lines readable as well.
  stdin.setRawMode(true);
  let terminal: number | undefined;
  try {
    terminal = openSync('/dev/tty', constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    const typed = Buffer.alloc(4_096);
    while (readSync(terminal, typed) > 0);
  } catch {
    // EAGAIN: nothing is left. Others: there is no such terminal, and nothing to discard.
  } finally {
    if (terminal !== undefined) closeSync(terminal);
    stdin.setRawMode(false);
  }
}
