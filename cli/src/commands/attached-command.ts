// Runs a command of a sandbox attached to this process, for `exec -i`, `exec -t` and `run`:
// forwards stdio or the terminal, signals and the exit code.
import { Writable } from 'node:stream';
import type { CommandOptions, Signal } from '@berth/sdk';
import { joinTerminal, sizeOf } from '../connections/joined-terminal.ts';
import { fitting, startCommand, streamsOf, writeAll } from '../connections/streams.ts';
import type { CliContext } from '../program/context.ts';
import { CliFailure, EXIT_BY_SIGNAL, UsageError } from '../output/failure.ts';

interface Attachment {
  /** Pass stdin; otherwise the command's stdin is empty. */
  interactive: boolean;
  /** Allocate a terminal. */
  tty: boolean;
}

/** Throws a UsageError for `-t` without a terminal. */
export function checkAttachment({ stdin }: CliContext, { tty }: Attachment): void {
  if (tty && !stdin.isTTY) {
    throw new UsageError('-t requires a terminal, but stdin is not one', {
      remedy: 'use -i without -t to pass stdin',
    });
  }
}

/**
 * Resolves with the exit code. Rejects if it is unknown, on a second signal to terminate, and when
 * stdout is closed.
 */
export async function attachCommand(
  context: CliContext,
  { sandboxId, ...command }: { sandboxId: string; command: string } & CommandOptions,
  attachment: Attachment,
): Promise<number> {
  const leaving = new AbortController();
  const stop = AbortSignal.any([context.signal, leaving.signal]);
  const connection = await context.connect();
  const leave = (name: keyof typeof EXIT_BY_SIGNAL): void =>
    leaving.abort(new CliFailure(`stopped by ${name}`, { exitCode: EXIT_BY_SIGNAL[name] }));
  if (attachment.tty) {
    const terminal = await fitting(
      sandboxId,
      streamsOf(connection, sandboxId).terminal({ ...command, ...sizeOf(context.stdout), signal: stop }),
    );
    const release = passSignals(context, (name) => terminal.signal(name), leave);
    try {
      return await joinTerminal(terminal, {
        stdin: attachment.interactive ? context.stdin : null,
        stdout: context.stdout,
      });
    } finally {
      release();
    }
  }
  const remote = await startCommand(connection, { sandboxId, ...command }, stop);
  const release = passSignals(context, (name) => remote.signal(name), leave);
  const { stdin, stdout, stderr } = context;
  const sink = Writable.fromWeb(remote.stdin);
  // A command may exit without reading its input.
  sink.on('error', () => undefined);
  if (attachment.interactive) stdin.pipe(sink);
  else sink.end();
  try {
    const written = Promise.all([writeAll(remote.stdout, stdout), writeAll(remote.stderr, stderr)]);
    written.catch(() => undefined);
    const { exitCode } = await remote.exited;
    await written;
    return exitCode;
  } finally {
    release();
    if (attachment.interactive) {
      stdin.unpipe(sink);
      // An open stdin would keep the process alive.
      stdin.destroy();
    }
  }
}

/** Signals that ask a program to terminate; the second kills the command. */
const TERMINATION_SIGNALS = new Set<string>(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']);

function passSignals(
  context: CliContext,
  send: (name: Signal) => void,
  leave: (name: keyof typeof EXIT_BY_SIGNAL) => void,
): () => void {
  let asked = false;
  return context.takeSignals((name) => {
    if (name === 'SIGPIPE' || (asked && name in EXIT_BY_SIGNAL)) {
      leave(name as keyof typeof EXIT_BY_SIGNAL);
      return;
    }
    asked ||= TERMINATION_SIGNALS.has(name);
    // takeSignals passes only names of Signal here.
    send(name as Signal);
  });
}
