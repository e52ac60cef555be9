// Connects the local terminal to that of a process.
import { BerthError, type ProcessEnd, type SandboxProcess, type TerminalSize } from '@berth/sdk';
import { TERMINAL_SIDE } from '@berth/sdk/limits';
import { joinTerminal } from '../connections/joined-terminal.ts';
import type { CliContext } from '../program/context.ts';
import { Detached, type Attachment } from './attachment.ts';
import { Interruptions } from './interruptions.ts';
import { Keys } from './keys.ts';
import { lossText } from './shown-output.ts';

/** Resolves with the exit code, null if it is unknown. Rejects once its signal aborts. */
export async function attachTerminal(
  { out, stdin, stdout, stderr }: CliContext,
  { process, tail, interactive, signal, leave }: Attachment,
): Promise<number | null> {
  const end = Promise.withResolvers<ProcessEnd>();
  end.promise.catch(() => undefined);
  signal.addEventListener('abort', () => end.reject(signal.reason), { once: true });
  // A raw terminal needs the carriage returns.
  const say = (text: string): void => {
    stderr.write('\r\n');
    out.hint(text);
    stderr.write('\r');
  };
  const interruptions = new Interruptions(process.sandboxId, say);
  async function* shownBytes(): AsyncGenerator<Uint8Array, void, undefined> {
    const chunks = process.outputUntilExit({ tail, signal, onRetry: (error) => interruptions.failed(error) });
    try {
      for (;;) {
        const step = await chunks.next();
        interruptions.over();
        if (step.done === true) {
          end.resolve(step.value);
          return;
        }
        if (step.value.lostBytes > 0) say(lossText(step.value));
        yield step.value.bytes;
      }
    } catch (error) {
      end.reject(error);
    }
  }
  const input = process.stdin.getWriter();
  const keys = new Keys({
    send: async (bytes) => await input.write(bytes),
    detach: () => leave(new Detached('detached')),
    fail: (error) => {
      if (!(error instanceof BerthError) || error.code !== 'process_over') leave(error);
    },
  });
  const resize = stdout.isTTY ? resizer(process) : () => undefined;
  const exited = end.promise.then(({ exitCode }) => ({ exitCode: exitCode ?? 0 }));
  exited.catch(() => undefined);
  const terminal = { readable: shownBytes(), writable: keys.writable, resize, exited, close: () => undefined };
  try {
    await joinTerminal(terminal, { stdin: interactive ? stdin : null, stdout });
    return (await end.promise).exitCode;
  } finally {
    input.abort().catch(() => undefined);
  }
}

/**
 * Sends the last size that was asked for. The first one is preceded by another: a program redraws
 * its screen when the size changes.
 */
function resizer(process: SandboxProcess): (size: TerminalSize) => void {
  let wanted: TerminalSize | null = null;
  let isSending = false;
  let isFirst = true;
  const send = async (): Promise<void> => {
    isSending = true;
    try {
      while (wanted !== null) {
        const size: TerminalSize = wanted;
        wanted = null;
        if (isFirst) await process.resize({ ...size, rows: size.rows + (size.rows < TERMINAL_SIDE.max ? 1 : -1) });
        isFirst = false;
        await process.resize(size);
      }
    } catch {
      // The output tells what happened.
    }
    isSending = false;
  };
  return (size) => {
    wanted = size;
    if (!isSending) void send();
  };
}
