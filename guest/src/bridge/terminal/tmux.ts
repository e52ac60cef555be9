// The tmux server of a terminal session: its name, its options, and the command that attaches.
// Each session has a server of its own, apart from those of the sandbox user.

const SESSION = 'agent';
/** Lines kept above the screen. */
const HISTORY_LINES = 10_000;
/** Time in which a program waits for the rest of an escape sequence: Escape is a key of agents. */
const ESCAPE_MS = 10;

/** Program of a terminal. */
export interface TerminalProgram {
  file: string;
  args: readonly string[];
  /** Environment of the tmux server, which its programs inherit. */
  env: Readonly<Record<string, string>>;
}

/** Arguments that name the server: its socket is in /tmp/tmux-UID, which tmux keeps private. */
const serverOf = (sessionId: string): string[] => ['-L', `berth-${sessionId}`];

/** Arguments of the server, in the foreground, without the user's configuration. */
export function serverArguments(sessionId: string): string[] {
  return [...serverOf(sessionId), '-f', '/dev/null', '-D'];
}

/**
 * Runs the program. A failure in its first seconds stays on the screen for a minute, since nobody
 * is attached yet.
 */
const RUN =
  '"$@"; code=$?; [ $code -eq 0 ] || [ $code -ge 128 ] || [ $SECONDS -gt 5 ] || ' +
  `{ printf '\\nThe agent exited with code %s. Press Enter to close.\\n' $code; read -rt 60 _; }; exit $code`;

/**
 * Arguments of the client that starts the program. tmux takes no key, so that all keys reach the
 * program, and exits with it.
 */
export function startArguments(sessionId: string, folder: string, { file, args }: TerminalProgram): string[] {
  const options: string[][] = [
    ...['prefix', 'prefix2'].map((name) => ['set', '-g', name, 'None']),
    ['set', '-g', 'status', 'off'],
    ['set', '-g', 'mouse', 'on'],
    // Its menu could kill the program, or start a shell beside it.
    ...['MouseDown3Pane', 'M-MouseDown3Pane'].map((key) => ['unbind', '-n', key]),
    ['set', '-g', 'history-limit', String(HISTORY_LINES)],
    ['set', '-s', 'escape-time', String(ESCAPE_MS)],
    ['set', '-s', 'terminal-features[90]', 'xterm*:hyperlinks:RGB'],
  ];
  const program = ['/bin/bash', '-c', RUN, 'agent', file, ...args];
  const session = ['new-session', '-d', '-s', SESSION, '-c', folder, '--', ...program.map(escaped)];
  const commands = [...options, session, ['set', '-s', 'exit-empty', 'on']];
  return [...serverOf(sessionId), '-N', ...commands.flatMap((one, at) => (at === 0 ? one : [';', ...one]))];
}

/** Arguments of the client that ends the server and its programs. */
export function endArguments(sessionId: string): string[] {
  return [...serverOf(sessionId), '-N', 'kill-server'];
}

/** Shell command that shows the program in the caller's terminal. */
export function attachCommand(sessionId: string): string {
  return `exec tmux -u ${serverOf(sessionId).join(' ')} -N attach-session -t ${SESSION}`;
}

/** A final semicolon of an argument would separate commands. */
function escaped(argument: string): string {
  return argument.endsWith(';') ? `${argument.slice(0, -1)}\\;` : argument;
}
