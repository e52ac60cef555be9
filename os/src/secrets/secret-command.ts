// Runs the operator's command that prints or stores a secret, for example a client of a key
// management service. Without a shell, in bounded time, with bounded output.
import { spawnSync } from 'node:child_process';

/** Limit of the command's run, which blocks this process. */
const DEADLINE_MS = 30_000;
/** Limit of stdout and of stderr. */
const MOST_BYTES = 65_536;
/** Characters of stderr in an error. */
const QUOTED = 2_000;
/** Characters that only a shell would interpret. */
const SHELL_ONLY = /["'`\\$|&;<>]/;

interface SecretCommand {
  /** Names the command in errors. */
  variable: string;
  /** Absolute path of a program and its arguments, separated by spaces. */
  line: string;
  environment: Readonly<NodeJS.ProcessEnv>;
  /** The program's stdin, for a command that stores; absent: the command must print something. */
  input?: string;
}

/** Returns stdout. Throws with the names of variable and program, and stderr, never with stdout. */
export function runSecretCommand({ variable, line, environment, input }: SecretCommand): string {
  const [program = '', ...args] = line.trim().split(/\s+/);
  const shellOnly = SHELL_ONLY.exec(line)?.[0];
  if (shellOnly !== undefined)
    throw new Error(`cannot use ${variable}: no shell interprets ${shellOnly}. Put the command into a script`);
  if (!program.startsWith('/'))
    throw new Error(`cannot use ${variable}: '${program}' is not the absolute path of a program`);

  const { error, status, signal, stdout, stderr } = spawnSync(program, args, {
    input: input ?? '',
    encoding: 'utf8',
    env: environment,
    timeout: DEADLINE_MS,
    killSignal: 'SIGKILL',
    maxBuffer: MOST_BYTES,
  });
  const isSilent = input === undefined && (stdout ?? '').trim() === '';
  if (error === undefined && status === 0 && !isSilent) return stdout;

  const reason =
    error === undefined
      ? `${signal === null ? `exit code ${status}` : `signal ${signal}`}${isSilent ? ', no output' : ''}`
      : ({
          ETIMEDOUT: `no exit within ${DEADLINE_MS / 1_000} s`,
          ENOBUFS: `more than ${MOST_BYTES / 1_024} KiB of output`,
          ENOENT: 'no such program',
        }[(error as NodeJS.ErrnoException).code ?? ''] ?? error.message);
  const quoted = (stderr ?? '')
    .trim()
    .slice(-QUOTED)
    .replaceAll(/(?!\n)\p{Cc}/gu, ' ');
  throw new Error(`cannot use ${variable}: ${program} failed (${reason})${quoted === '' ? '' : `:\n${quoted}`}`);
}
