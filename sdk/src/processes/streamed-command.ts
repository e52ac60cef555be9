// A command whose output is passed on while it runs: a process that is removed at its end.
import { CommandResult, type ExecOptions } from './command.ts';
import { EXEC_LIMITS } from '../generated/limits.ts';
import type { ProcessEnd, ProcessOutput, SandboxProcess } from './process.ts';
import type { SandboxProcesses } from './processes.ts';
import { BerthError } from '../transport/errors.ts';
import { Deadline, unlessAborted } from '../transport/time.ts';

/** Limit of a removal, which must not depend on the caller's signal. */
const REMOVE_TIMEOUT_MS = 30_000;

/**
 * Resolves with the last bytes of its outputs, as exec does. An abort kills it; its timeout does so
 * if nobody is left to.
 */
export async function streamCommand(
  processes: SandboxProcesses,
  command: string,
  { onStdout, onStderr, stdin, signal, timeoutMs, ...options }: ExecOptions & { timeoutMs: number },
): Promise<CommandResult> {
  signal?.throwIfAborted();
  const left = new AbortController();
  const deadline = new Deadline(timeoutMs, 'the command', [signal, left.signal]);
  const outputs = { stdout: new Tail(onStdout), stderr: new Tail(onStderr) };
  // Not aborted by the signal: what was started must be removed.
  const starting = processes.start(command, {
    timeoutSeconds: EXEC_LIMITS.timeoutSeconds.default,
    ...options,
    stdin: stdin !== undefined,
  });
  let process: SandboxProcess | undefined;
  try {
    process = await unlessAborted(deadline.signal, starting);
    if (stdin !== undefined) void feed(process, stdin);
    const { exitCode, reason } = await follow(process, outputs, deadline.signal);
    if (exitCode === null) {
      throw new BerthError(`nobody saw the end of the command: process ${process.id} was lost`, {
        code: 'unexpected_status',
        sandboxId: process.sandboxId,
      });
    }
    const { stdout, stderr } = outputs;
    return new CommandResult(command, {
      exitCode,
      stdout: stdout.text,
      stderr: stderr.text,
      truncated: stdout.isCut || stderr.isCut,
      timedOut: reason === 'timed_out',
    });
  } finally {
    deadline.end();
    left.abort();
    const removed = starting.then((one) => one.remove({ timeoutMs: REMOVE_TIMEOUT_MS })).catch(() => undefined);
    if (process !== undefined) await removed;
  }
}

/** A command may end without reading its input. */
async function feed(process: SandboxProcess, text: string): Promise<void> {
  const input = process.stdin.getWriter();
  try {
    await input.write(text);
    await input.close();
  } catch {
    // Its end tells what happened.
  }
}

/** Passes on what was written until its end: others may hold its outputs open after it. */
async function follow(
  process: SandboxProcess,
  outputs: { stdout: Tail; stderr: Tail },
  signal: AbortSignal,
): Promise<ProcessEnd> {
  const chunks = process.outputUntilExit({ signal });
  for (;;) {
    const step = await chunks.next();
    if (step.done === true) {
      await outputs.stdout.end();
      await outputs.stderr.end();
      return step.value;
    }
    await outputs[step.value.stream === 'stderr' ? 'stderr' : 'stdout'].add(step.value);
  }
}

/** The end of an output, of which all is passed on. */
class Tail {
  readonly #pass: ExecOptions['onStdout'];
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  #text = '';
  isCut = false;

  constructor(pass: ExecOptions['onStdout']) {
    this.#pass = pass;
  }

  async add({ bytes, lostBytes }: ProcessOutput): Promise<void> {
    this.isCut ||= lostBytes > 0;
    // A character before a gap does not continue behind it.
    const before = lostBytes > 0 ? this.#decoder.decode() : '';
    await this.#take(before + this.#decoder.decode(bytes, { stream: true }));
  }

  async end(): Promise<void> {
    await this.#take(this.#decoder.decode());
  }

  get text(): string {
    const bytes = new TextEncoder().encode(this.#text);
    if (bytes.length <= EXEC_LIMITS.outputBytes) return this.#text;
    this.isCut = true;
    let from = bytes.length - EXEC_LIMITS.outputBytes;
    while (((bytes[from] ?? 0) & 0xc0) === 0x80) from += 1;
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(from));
  }

  async #take(text: string): Promise<void> {
    if (text === '') return;
    this.#text += text;
    // Each of its UTF-16 units is at least one byte of the kept end.
    if (this.#text.length > 4 * EXEC_LIMITS.outputBytes) {
      this.isCut = true;
      this.#text = this.#text.slice(-2 * EXEC_LIMITS.outputBytes);
    }
    await this.#pass?.(text);
  }
}
