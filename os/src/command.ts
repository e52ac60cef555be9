// Runs one program and waits for it.
import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { StringDecoder } from 'node:string_decoder';

/** A program ended with a failure. The message names it and holds the end of what it wrote. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitCode: number | null;
  readonly stderr: string;

  constructor(command: string, exitCode: number | null, signalName: string | null, stdout: string, stderr: string) {
    const outcome = signalName === null ? `exit code ${exitCode}` : `signal ${signalName}`;
    const last = (stderr.trim() === '' ? stdout : stderr).trim().split('\n').slice(-12).join('\n');
    super(`${command} failed (${outcome})${last === '' ? '' : `:\n${last}`}`);
    this.exitCode = exitCode;
    this.stderr = stderr;
  }
}

export interface CommandOptions {
  signal: AbortSignal;
  /** Replaces the whole environment. */
  env?: Record<string, string>;
  /** Fed to the program; without it, its standard input is empty. */
  input?: Readable;
  /** Takes standard output instead of the returned text: an open file's descriptor. */
  stdoutFd?: number;
  /** Called for each full line of standard output. */
  onLine?: (line: string) => void;
}

/** What is kept of the program's standard error, in characters. */
const STDERR_KEPT = 65_536;

/** Like {@link runCommandForBytes}, for output that is text. */
export async function runCommand(command: string, args: readonly string[], options: CommandOptions): Promise<string> {
  return (await runCommandForBytes(command, args, options)).toString('utf8');
}

/**
 * Resolves with standard output when the program ended with 0; rejects with {@link CommandError}
 * otherwise. An abort kills it.
 */
export async function runCommandForBytes(
  command: string,
  args: readonly string[],
  options: CommandOptions,
): Promise<Buffer> {
  options.signal.throwIfAborted();
  const child = spawn(command, args, {
    stdio: [options.input ? 'pipe' : 'ignore', options.stdoutFd ?? 'pipe', 'pipe'],
    env: options.env ?? { ...process.env, LC_ALL: 'C.UTF-8' },
    signal: options.signal,
    killSignal: 'SIGKILL',
  });
  const stdout: Buffer[] = [];
  let stderr = '';
  let line = '';
  const decoder = new StringDecoder('utf8');
  child.stdout?.on('data', (bytes: Buffer) => {
    stdout.push(bytes);
    if (!options.onLine) return;
    const lines = (line + decoder.write(bytes)).split('\n');
    line = lines.pop() ?? '';
    for (const each of lines) options.onLine(each);
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_KEPT);
  });
  const ended = new Promise<void>((resolve, reject) => {
    child.on('error', (error: NodeJS.ErrnoException) => {
      // Node says ENOENT for a missing working directory too; none is set here.
      reject(
        error.code === 'ENOENT'
          ? new Error(`The program ${command} is not installed on this machine`, { cause: error })
          : error,
      );
    });
    child.on('close', (code, signalName) => {
      if (code === 0) resolve();
      else reject(new CommandError(command, code, signalName, Buffer.concat(stdout).toString('utf8'), stderr));
    });
  });
  // A program that ends early breaks the pipe: its own failure says more than EPIPE, so it is
  // awaited first.
  const fed = options.input && child.stdin ? pipeline(options.input, child.stdin) : Promise.resolve();
  const [end, feed] = await Promise.allSettled([ended, fed]);
  if (end.status === 'rejected') throw end.reason;
  if (feed.status === 'rejected') throw feed.reason;
  return Buffer.concat(stdout);
}
