// A command in a sandbox as if it ran here: stdin, stdout, stderr or the terminal of this process
// become its own, signals to this process reach it, and its exit code comes back. For `exec -i`,
// `exec -t` and `run`.
import { Writable } from 'node:stream';
import type { Signal } from '@berth/sdk';
import { joinTerminal, sizeOf } from '../connections/joined-terminal.ts';
import { fitting, startCommand, streamsOf, writeAll } from '../connections/streams.ts';
import type { CliContext } from '../program/context.ts';
import { CliFailure, EXIT_BY_SIGNAL, UsageError } from '../output/failure.ts';

interface Attachment {
  /** Whether stdin is the command's. Without it the command finds the end of its input. */
  interactive: boolean;
  /** Whether it has a terminal. */
  tty: boolean;
}

/** Throws a UsageError where a terminal is asked for and there is none. */
export function checkAttachment({ stdin }: CliContext, { tty }: Attachment): void {
  if (tty && !stdin.isTTY) {
    throw new UsageError('-t needs a terminal, and stdin is none', {
      remedy: 'leave -t away: -i alone passes stdin on as it is',
    });
  }
}

/**
 * Resolves with its exit code. Rejects when nobody knows it; a second signal that asks it to end,
 * and a reader of the output that has gone, give it up.
 */
export async function attachCommand(
  context: CliContext,
  { sandboxId, command }: { sandboxId: string; command: string },
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
      streamsOf(connection, sandboxId).terminal({ command, ...sizeOf(context.stdout), signal: stop }),
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
  const remote = await startCommand(connection, { sandboxId, command }, stop);
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
      // Nothing keeps this process any more.
      stdin.destroy();
    }
  }
}

/** What asks a program to end: a second one finds it unwilling. */
const ASKS_TO_END = new Set<string>(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']);

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
    asked ||= ASKS_TO_END.has(name);
    // takeSignals hands over none but these.
    send(name as Signal);
  });
}
