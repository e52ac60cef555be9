// A command in a sandbox as if it ran here: stdin, stdout, stderr or the terminal of this process
// become its own, signals to this process reach it, and its exit code comes back. For `exec -i`,
// `exec -t` and `run`.
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { joinTerminal, sizeOf } from '../connections/joined-terminal.ts';
import { commandTarget, startRemoteCommand } from './remote-command.ts';
import { openApiWebSocket } from '../connections/websocket.ts';
import type { CliContext } from '../program/context.ts';
import { CliFailure, EXIT_BY_SIGNAL, UsageError } from '../output/failure.ts';

export interface Attachment {
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
    const size = sizeOf(context.stdout);
    const target = commandTarget(sandboxId, command, { cols: String(size.cols), rows: String(size.rows) });
    const socket = await openApiWebSocket(connection, target, stop);
    const release = passSignals(
      context,
      (name) => socket.send(JSON.stringify({ signal: name }), { binary: false }),
      leave,
    );
    try {
      return await joinTerminal(
        socket,
        { stdin: attachment.interactive ? context.stdin : null, stdout: context.stdout },
        stop,
      );
    } finally {
      release();
    }
  }
  const remote = await startRemoteCommand(connection, { sandboxId, command }, stop);
  const release = passSignals(context, (name) => remote.signal(name), leave);
  const { stdin, stdout, stderr } = context;
  if (attachment.interactive) stdin.pipe(remote.stdin);
  else remote.stdin.end();
  try {
    const written = Promise.all([writeAll(remote.stdout, stdout), writeAll(remote.stderr, stderr)]);
    written.catch(() => undefined);
    const exitCode = await remote.ended;
    await written;
    return exitCode;
  } finally {
    release();
    if (attachment.interactive) {
      stdin.unpipe(remote.stdin);
      // Nothing keeps this process any more.
      stdin.destroy();
    }
  }
}

/** What asks a program to end: a second one finds it unwilling. */
const ASKS_TO_END = new Set<string>(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']);

function passSignals(
  context: CliContext,
  send: (name: string) => void,
  leave: (name: keyof typeof EXIT_BY_SIGNAL) => void,
): () => void {
  let asked = false;
  return context.takeSignals((name) => {
    if (name === 'SIGPIPE' || (asked && name in EXIT_BY_SIGNAL)) {
      leave(name as keyof typeof EXIT_BY_SIGNAL);
      return;
    }
    asked ||= ASKS_TO_END.has(name);
    send(name);
  });
}

async function writeAll(from: Readable, to: NodeJS.WriteStream): Promise<void> {
  for await (const chunk of from as AsyncIterable<Buffer>) if (!to.write(chunk)) await once(to, 'drain');
}
