// Processes in the guests of both services, driven by a test.
import type { FakeProcess, ProcessGuests } from '../../../api/test/world/guests/process-guests.ts';
import type { StartProcessRequest } from '../../src/generated/raw/index.ts';
import type { ProcessScript, TestProcess } from '../../src/testing/index.ts';

type StreamName = 'stdout' | 'stderr' | 'output';

interface End {
  exitCode?: number;
  signal?: string;
  reason?: 'timed_out' | 'out_of_memory' | 'lost';
}

export interface GuestProcess {
  /** Options that it was started with, as far as both services show them. */
  readonly asked: Pick<StartProcessRequest, 'command' | 'argv' | 'cwd' | 'user' | 'stdin' | 'outputBytes'>;
  /** Input that it has read. */
  readonly input: Buffer;
  readonly inputIsOpen: boolean;
  readonly signals: readonly string[];
  write(stream: StreamName, bytes: string | Uint8Array): void;
  end(end?: End): void;
  /** Ends it, while a program in the background holds its outputs until {@link close}. */
  endInFront(end?: End): void;
  close(): void;
  /** Whether it reads its input, by default true. */
  setReads(reads: boolean): void;
}

/** Processes of a service by sandbox and id. */
export interface Guests {
  /** Oldest first. */
  of(sandboxId: string): GuestProcess[];
  get(sandboxId: string, processId: string): GuestProcess | undefined;
}

export function guestsOfApi(guests: ProcessGuests): Guests {
  return {
    of: (sandboxId) => [...guests.of(sandboxId).values()].map(guestOfApi),
    get: (sandboxId, processId) => {
      const process = guests.of(sandboxId).get(processId);
      return process === undefined ? undefined : guestOfApi(process);
    },
  };
}

function guestOfApi(process: FakeProcess): GuestProcess {
  const end = ({ exitCode, ...end }: End = {}): void =>
    process.end({ exitCode: exitCode ?? (end.signal === undefined && end.reason === undefined ? 0 : null), ...end });
  const { command, argv, cwd, user, stdin, outputBytes } = process.asked;
  return {
    asked: {
      ...(command && { command }),
      ...(argv && { argv }),
      ...(cwd && { cwd }),
      ...(user && { user }),
      stdin,
      outputBytes,
    },
    get input() {
      return process.input.subarray(0, process.readBytes);
    },
    get inputIsOpen() {
      return process.inputIsOpen;
    },
    signals: process.signals,
    write: (stream, bytes) => process.write(stream, Buffer.from(bytes)),
    end,
    endInFront: (how) => {
      process.outputsAreClosed = false;
      end(how);
    },
    close: () => process.closeOutputs(),
    setReads: (reads) => {
      process.readBytes = reads ? undefined : process.input.length;
    },
  };
}

/** Processes of a test server that has {@link play} as its option `process`. */
export class GuestsInMemory implements Guests {
  readonly #all: GuestInMemory[] = [];

  readonly play: ProcessScript = async (process) => {
    const guest = new GuestInMemory(process);
    this.#all.push(guest);
    await guest.closed;
  };

  of(sandboxId: string): GuestProcess[] {
    return this.#all.filter(({ process }) => process.sandbox.id === sandboxId);
  }

  get(_sandboxId: string, processId: string): GuestProcess | undefined {
    return this.#all.find(({ process }) => process.id === processId);
  }
}

class GuestInMemory implements GuestProcess {
  readonly process: TestProcess;
  readonly asked: GuestProcess['asked'];
  readonly signals: string[] = [];
  input = Buffer.alloc(0);
  inputIsOpen = true;
  readonly #closed = Promise.withResolvers<void>();
  #mayRead = Promise.resolve();
  #read = (): void => undefined;

  constructor(process: TestProcess) {
    this.process = process;
    const { command, argv, cwd, user, stdin, outputBytes } = process.request;
    this.asked = {
      ...{ ...(command && { command }), ...(argv && { argv }), ...(cwd && { cwd }), ...(user && { user }) },
      ...{ ...(stdin !== undefined && { stdin }), ...(outputBytes !== undefined && { outputBytes }) },
    };
    process.onSignal((signal) => this.signals.push(signal));
    process.signal.addEventListener('abort', () => this.close(), { once: true });
    void this.#takeInput();
  }

  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  write(stream: StreamName, bytes: string | Uint8Array): void {
    this.process[stream === 'stderr' ? 'stderr' : 'stdout'](bytes);
  }

  end(end: End = {}): void {
    this.process.end(end);
    this.close();
  }

  endInFront(end: End = {}): void {
    this.process.end(end);
  }

  close(): void {
    this.#closed.resolve();
  }

  setReads(reads: boolean): void {
    this.#read();
    if (reads) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#mayRead = promise;
    this.#read = resolve;
  }

  async #takeInput(): Promise<void> {
    for await (const bytes of this.process.stdin) {
      await this.#mayRead;
      this.input = Buffer.concat([this.input, bytes]);
    }
    this.inputIsOpen = false;
  }
}
