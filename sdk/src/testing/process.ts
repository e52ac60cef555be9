// A process of the test server: its record, outputs and input.
import { PROCESS_LIMITS } from '../generated/command-limits.ts';
import type {
  Process,
  ProcessOutputChunk,
  ReadProcessOutputResult,
  Sandbox,
  StartProcessRequest,
} from '../generated/raw/index.ts';
import type { Signal } from '../streams/program.ts';
import { newId } from './ids.ts';
import { Refusal } from './requests/refusal.ts';
import { KeptOutput } from './kept-output.ts';
import type { ProcessScript, TestProcess, TestProcessEnd } from './process-script.ts';

type StreamName = ProcessOutputChunk['stream'];

interface StartedProcessOptions {
  sandbox: Sandbox;
  request: StartProcessRequest;
  now: () => number;
  onChange: () => void;
}

const HOME = '/code';
const USER = 'berth';
/** Signals that end no process by default. */
const HARMLESS: ReadonlySet<string> = new Set(['SIGCONT', 'SIGTSTP', 'SIGWINCH']);
const SIGNAL_NUMBERS: Readonly<Record<string, number>> = {
  ...{ SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGKILL: 9, SIGUSR1: 10, SIGSEGV: 11, SIGUSR2: 12, SIGPIPE: 13, SIGTERM: 15 },
};

export class StartedProcess {
  readonly id = newId('prc');
  readonly sandbox: Sandbox;
  readonly #options: StartedProcessOptions;
  readonly #record: Process;
  readonly #outputs: { readonly [stream in StreamName]?: KeptOutput };
  readonly #stop = new AbortController();
  /** Input that the script has not taken. */
  readonly #unread: Uint8Array[] = [];
  #inputBytes = 0;
  #inputIsOpen: boolean;
  #notifyInput = (): void => undefined;
  #onSignal: ((signal: Signal) => void) | undefined;
  #isComplete = false;

  constructor(options: StartedProcessOptions) {
    this.#options = options;
    this.sandbox = options.sandbox;
    const {
      command,
      argv = [],
      cwd = HOME,
      user = USER,
      tty = false,
      stdin,
      keepAwake = false,
      name,
      outputBytes,
    } = options.request;
    this.#record = {
      id: this.id,
      sandboxId: options.sandbox.id,
      name: name ?? null,
      command: (command ?? argv.join(' ')).slice(0, PROCESS_LIMITS.shownCharacters),
      ...{ cwd, user, tty, stdin: tty || stdin === true, keepAwake },
      ...{ status: 'running', exitCode: null, signal: null, reason: null },
      startedAt: new Date(options.now()).toISOString(),
      endedAt: null,
    };
    const kept = outputBytes ?? PROCESS_LIMITS.outputBytes.default;
    this.#outputs = tty
      ? { output: new KeptOutput(kept) }
      : { stdout: new KeptOutput(kept), stderr: new KeptOutput(kept) };
    this.#inputIsOpen = tty || stdin === true;
  }

  get view(): Process {
    return this.#record;
  }

  get hasEnded(): boolean {
    return this.#record.status === 'exited';
  }

  /** Plays it until the script returns. */
  async play(script: ProcessScript): Promise<void> {
    const { request, sandbox } = this.#options;
    const tty = this.#record.tty;
    const facade: TestProcess = {
      id: this.id,
      command: request.command ?? (request.argv ?? []).join(' '),
      request,
      sandbox,
      signal: this.#stop.signal,
      stdin: this.#takeInput(),
      stdout: (output) => this.#write(tty ? 'output' : 'stdout', output),
      stderr: (output) => this.#write(tty ? 'output' : 'stderr', output),
      onSignal: (handler) => {
        this.#onSignal = handler;
      },
      end: (end) => this.#end(end),
    };
    let end: TestProcessEnd | undefined | void;
    try {
      // The start is answered before the process begins.
      await Promise.resolve();
      end = await script(facade);
    } catch {
      end = 1;
    }
    this.#end(end ?? 0);
    this.#complete();
  }

  /** Whether there is output behind the cursor, or nobody can write any more. */
  hasNews(since: string | undefined): boolean {
    return this.#isComplete || this.#chunksFrom(this.#startsOf(since, undefined)).chunks.length > 0;
  }

  read(since: string | undefined, tail: number | undefined): ReadProcessOutputResult {
    const { chunks, next } = this.#chunksFrom(this.#startsOf(since, tail));
    const isAll = this.#streams().every(([name, { length }]) => (next[name] ?? 0) >= length);
    return { process: this.#record, chunks, cursor: cursorOf(next), complete: this.#isComplete && isAll };
  }

  /** Returns the length of the input so far. */
  writeInput(bytes: Uint8Array, offset: number | undefined, end: boolean): number {
    const from = offset ?? this.#inputBytes;
    if (from > this.#inputBytes)
      throw new Refusal('process_input_gap', `body.offset is beyond the input so far, ${this.#inputBytes} bytes`);
    const added = bytes.subarray(this.#inputBytes - from);
    if (added.length > 0 || end) {
      if (!this.#inputIsOpen) throw new Refusal('process_over');
      const unread = this.#unread.reduce((sum, { length }) => sum + length, 0);
      if (unread + added.length > PROCESS_LIMITS.inputBytes)
        throw new Refusal('process_input_full', undefined, { 'retry-after': '1' });
      if (added.length > 0) this.#unread.push(added);
      this.#inputBytes += added.length;
      this.#inputIsOpen = !end;
      this.#notifyInput();
    }
    return this.#inputBytes;
  }

  signal(signal: Signal): void {
    if (this.hasEnded) throw new Refusal('process_over');
    if (signal !== 'SIGKILL' && this.#onSignal !== undefined) this.#onSignal(signal);
    else if (!HARMLESS.has(signal)) this.stop({ signal });
  }

  resize(): void {
    if (!this.#record.tty) throw new Refusal('process_has_no_terminal');
  }

  /** Ends it with its outputs, if it runs. */
  stop(end: TestProcessEnd): void {
    this.#end(end);
    this.#complete();
    this.#stop.abort(new Error('the process was ended'));
  }

  #streams(): [StreamName, KeptOutput][] {
    return Object.entries(this.#outputs) as [StreamName, KeptOutput][];
  }

  #startsOf(since: string | undefined, tail: number | undefined): Map<StreamName, number> {
    const offsets = since?.split('.').map(Number) ?? [];
    return new Map(
      this.#streams().map(([name, { length }], index) => {
        const tailed = tail === undefined ? 0 : Math.max(0, length - tail);
        return [name, offsets[index] ?? tailed];
      }),
    );
  }

  #chunksFrom(starts: ReadonlyMap<StreamName, number>): {
    chunks: ProcessOutputChunk[];
    next: { [stream in StreamName]?: number };
  } {
    const next = Object.fromEntries(starts) as { [stream in StreamName]?: number };
    const chunks = [...starts].flatMap(([stream, from]): ProcessOutputChunk[] => {
      const found = this.#outputs[stream]?.read(from);
      if (found === undefined) return [];
      next[stream] = found.next;
      return [{ stream, ...found.chunk, cursor: cursorOf(next) }];
    });
    return { chunks, next };
  }

  #write(stream: StreamName, output: string | Uint8Array): void {
    if (this.#isComplete) return;
    this.#outputs[stream]?.write(typeof output === 'string' ? new TextEncoder().encode(output) : output.slice());
    this.#options.onChange();
  }

  async *#takeInput(): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      for (let bytes = this.#unread.shift(); bytes !== undefined; bytes = this.#unread.shift()) yield bytes;
      if (!this.#inputIsOpen) return;
      await new Promise<void>((resolve) => {
        this.#notifyInput = resolve;
      });
    }
  }

  #end(end: TestProcessEnd = 0): void {
    if (this.hasEnded) return;
    const { exitCode, signal, reason } = typeof end === 'number' ? { exitCode: end } : end;
    const ofSignal = signal === undefined ? 0 : 128 + (SIGNAL_NUMBERS[signal] ?? 0);
    const code = reason === 'lost' ? null : reason === 'timed_out' ? 124 : (exitCode ?? ofSignal);
    Object.assign(this.#record, {
      ...{ status: 'exited', exitCode: code, signal: signal ?? null, reason: reason ?? null },
      endedAt: new Date(this.#options.now()).toISOString(),
    });
    this.#inputIsOpen = false;
    this.#notifyInput();
    this.#options.onChange();
  }

  #complete(): void {
    this.#isComplete = true;
    this.#options.onChange();
  }
}

function cursorOf(offsets: { readonly [stream in StreamName]?: number }): string {
  const { output, stdout = 0, stderr = 0 } = offsets;
  return output === undefined ? `${stdout}.${stderr}` : String(output);
}
