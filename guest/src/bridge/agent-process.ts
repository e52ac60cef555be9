// An agent's process that speaks JSON lines. Bounds what the agent writes, and what waits for it.
import type { ChildProcess } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { DriverRefusal, type DriverStart } from './driver.ts';

/** Longest line of an agent; an event carries at most a reply, or a tool's input and output. */
export const AGENT_LINE_BYTES = 16 * 1_024 * 1_024;
/** Bytes that may wait for an agent that does not read. */
const AGENT_QUEUE_BYTES = 16 * 1_024 * 1_024;
/** End of the agent's stderr, kept for the message of its exit. */
const STDERR_CHARACTERS = 2_048;
/** Times from the end of its input until an agent gets SIGTERM, and from there until SIGKILL. */
const CLOSE_MS = { term: 1_000, kill: 4_000 } as const;

export type Json = Readonly<Record<string, unknown>>;

export const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
/** The property as an object; empty if it is none. */
export const jsonOf = (value: unknown): Json => (isJson(value) ? value : {});
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

interface ProcessEvents {
  message(message: Json): void;
  /** The process exited, or broke its protocol and was killed. Called once, not after `close`. */
  exited(reason: string): void;
}

/** Path of an agent's program. Refuses if it is not there. */
export function programOf({ program }: DriverStart, name: string): string {
  const path = program.paths[name];
  try {
    if (path === undefined) throw new Error(`no path of ${name}`);
    accessSync(path, constants.X_OK);
    return path;
  } catch (error) {
    throw new DriverRefusal('agent_not_installed', `cannot start the agent: ${String(error)}`);
  }
}

export class AgentProcess {
  readonly #child: ChildProcess;
  readonly #events: ProcessEvents;
  readonly #ended: Promise<void>;
  #stderr = '';
  #pieces: Buffer[] = [];
  #pieceBytes = 0;
  #isOver = false;

  constructor(child: ChildProcess, events: ProcessEvents) {
    this.#child = child;
    this.#events = events;
    // A write to an agent that exited fails; its exit is the event.
    child.stdin?.on('error', () => undefined);
    child.stdout?.on('data', (chunk: Buffer) => this.#read(chunk));
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString('utf8')).slice(-STDERR_CHARACTERS);
    });
    this.#ended = new Promise((resolve) => {
      const end = (reason: string): void => {
        resolve();
        this.#over(reason);
      };
      child.once('error', (error) => end(error.message));
      child.once('exit', (code, signal) => end(`the agent exited with ${signal ?? `code ${code}`}: ${this.#stderr}`));
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  send(message: Json): void {
    const { stdin } = this.#child;
    if (this.#isOver || stdin === null || !stdin.writable) return;
    if (stdin.writableLength > AGENT_QUEUE_BYTES) return this.#break('the agent does not read its input');
    stdin.write(`${JSON.stringify(message)}\n`);
  }

  /** Kills the process; `exited` is not called. */
  kill(): void {
    this.#isOver = true;
    this.#pieces = [];
    this.#child.kill('SIGKILL');
  }

  /** Ends the process; `exited` is not called. */
  async close(): Promise<void> {
    this.#isOver = true;
    this.#pieces = [];
    this.#child.stdin?.end();
    const term = setTimeout(() => this.#child.kill('SIGTERM'), CLOSE_MS.term);
    const kill = setTimeout(() => this.#child.kill('SIGKILL'), CLOSE_MS.kill);
    await this.#ended;
    clearTimeout(term);
    clearTimeout(kill);
    // A background process of the agent may hold the other ends for as long as it runs.
    for (const pipe of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) pipe?.destroy();
  }

  #over(reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#pieces = [];
    this.#events.exited(reason);
  }

  #break(reason: string): void {
    this.#child.kill('SIGKILL');
    this.#over(reason);
  }

  #read(chunk: Buffer): void {
    let rest = chunk;
    for (let end = rest.indexOf(10); end !== -1 && !this.#isOver; end = rest.indexOf(10)) {
      const line = Buffer.concat([...this.#pieces, rest.subarray(0, end)]).toString('utf8');
      this.#pieces = [];
      this.#pieceBytes = 0;
      rest = rest.subarray(end + 1);
      this.#line(line);
    }
    if (this.#isOver || rest.length === 0) return;
    this.#pieces.push(rest);
    this.#pieceBytes += rest.length;
    if (this.#pieceBytes > AGENT_LINE_BYTES) this.#break(`the agent wrote a line of over ${AGENT_LINE_BYTES} bytes`);
  }

  #line(line: string): void {
    // Agents log to stdout now and then.
    if (!line.startsWith('{')) return;
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      return this.#break('the agent wrote a line that is no JSON');
    }
    if (isJson(message)) this.#events.message(message);
  }
}
