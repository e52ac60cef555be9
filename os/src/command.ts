// Runs a program and waits for it to exit.
import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { StringDecoder } from 'node:string_decoder';

/** A program failed. The message names it and quotes the end of its output. */
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
  /** The program's stdin; empty if absent. */
  input?: Readable;
  /** File descriptor that receives stdout instead of the returned text. */
  stdoutFd?: number;
  onLine?: (line: string) => void;
}

/** Limit of the stderr kept, in characters. */
const STDERR_KEPT = 65_536;

/** Like {@link runCommandForBytes}, for text output. */
export async function runCommand(command: string, args: readonly string[], options: CommandOptions): Promise<string> {
  return (await runCommandForBytes(command, args, options)).toString('utf8');
}

/**
 * Resolves with stdout on exit code 0; rejects with {@link CommandError} otherwise. An abort kills
 * the program.
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
      // Node also reports ENOENT for a missing working directory; none is set here.
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
  // EPIPE if the program exits early: await its exit first, which explains more.
  const fed = options.input && child.stdin ? pipeline(options.input, child.stdin) : Promise.resolve();
  const [end, feed] = await Promise.allSettled([ended, fed]);
  if (end.status === 'rejected') throw end.reason;
  if (feed.status === 'rejected') throw feed.reason;
  return Buffer.concat(stdout);
}
