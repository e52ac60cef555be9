// The agent's own program in a tmux server, which outlives the connections of those who use it. The
// server is the agent of its bridge: its end is the end of the session's program.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { DriverRefusal, type DriverStart, type ReadyAgent } from '../driver.ts';
import { endArguments, serverArguments, startArguments, type TerminalProgram } from './tmux.ts';

const TMUX = '/usr/bin/tmux';
const STEP_MS = 20;
/** Words of a client whose server does not listen yet. */
const LISTENS_NOT = /no server running|error connecting/;
/** End of the error output kept for messages. */
const STDERR_CHARACTERS = 1_024;

/** Resolves when the program runs. Rejects with {@link DriverRefusal}. */
export async function startTerminal(
  start: DriverStart,
  sessionId: string,
  program: TerminalProgram,
): Promise<ReadyAgent> {
  const { folder, events, signal } = start;
  const run = (args: readonly string[]): ChildProcess => start.spawn(TMUX, args, program.env);
  const server = watched(run(serverArguments(sessionId)));
  const kill = (): void => void server.child.kill('SIGKILL');
  signal.addEventListener('abort', kill, { once: true });
  let isReady = false;
  let isClosed = false;
  void server.ended.then((reason) => {
    if (isReady && !isClosed) events.exited(reason);
  });
  for (;;) {
    const client = watched(run(startArguments(sessionId, folder, program)));
    const failure = await client.ended;
    if (client.child.exitCode === 0) break;
    if (hasEnded(server.child)) throw new DriverRefusal('agent_not_ready', await server.ended);
    if (!LISTENS_NOT.test(failure)) {
      kill();
      throw new DriverRefusal('agent_not_ready', failure);
    }
    await delay(STEP_MS);
  }
  signal.removeEventListener('abort', kill);
  isReady = true;
  return {
    pid: server.child.pid ?? 0,
    close: async () => {
      isClosed = true;
      if (!hasEnded(server.child)) run(endArguments(sessionId));
      await server.ended;
    },
  };
}

interface Watched {
  child: ChildProcess;
  /** Resolves with the way in which it ended. */
  ended: Promise<string>;
}

function watched(child: ChildProcess): Watched {
  let errors = '';
  child.stdin?.end();
  child.stdin?.on('error', () => undefined);
  child.stdout?.resume();
  child.stderr?.on('data', (chunk: Buffer) => {
    errors = (errors + chunk.toString('utf8')).slice(-STDERR_CHARACTERS);
  });
  const ended = Promise.race([
    once(child, 'exit').then(([code, name]) => `tmux exited with ${name ?? `code ${code}`}: ${errors}`),
    once(child, 'error').then(([error]) => `tmux does not start: ${String(error)}`),
  ]).catch((error: unknown) => `tmux does not start: ${String(error)}`);
  return { child, ended };
}

function hasEnded({ exitCode, signalCode, pid }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null;
}
