// Connection of the guest daemon to the keeper of processes (keeper.pl): starts one when none runs,
// sends orders and passes on what it says. The keeper and its processes outlive this daemon.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { Frames, opened, send } from './keeper-wire.ts';
import { settingsOf, type Launch, type StreamName } from './launch.ts';

const START_DEADLINE_MS = 20_000;

/** How a process ended. `signal`: number of the signal that killed it, or 0. */
export interface ProcessEnd {
  code: number;
  signal: number;
  timedOut: boolean;
}

interface ProcessEvents {
  /** The stream is longer than a watched offset, or ended (`isClosed`). `length` in bytes. */
  grown(stream: StreamName, length: number, isClosed: boolean): void;
  /** All input is written, in total so many bytes; null: nobody reads it any more. */
  taken(bytes: number | null): void;
  /** `lengths`, in bytes: of stdout and stderr, or of the output of a terminal. */
  ended(end: ProcessEnd, lengths: readonly number[]): void;
  /** The keeper is gone: nobody knows how the process ended. */
  lost(): void;
}

/** A process of an earlier connection. */
interface KeptProcess {
  id: string;
  pid: number;
  /** Bytes of its input that have arrived. */
  inputBytes: number;
  end: ProcessEnd | null;
}

/** The process did not start. `stage`: what failed. */
export class NotStarted extends Error {
  override readonly name = 'NotStarted';
  readonly stage: string;
  /** Number of the system's error. */
  readonly errno: number;

  constructor(stage: string, errno: number) {
    super(`the process could not be started (${stage}, error ${errno})`);
    this.stage = stage;
    this.errno = errno;
  }
}

type Event = (events: ProcessEvents) => void;

interface Starting {
  resolve(pid: number): void;
  reject(error: Error): void;
}

export class Keeper {
  readonly #socketPath: string;
  readonly #program: string;
  readonly #leftOpen: number;
  /** Listeners, and what was said before there is one. */
  readonly #events = new Map<string, ProcessEvents | Event[]>();
  readonly #starting = new Map<string, Starting>();
  #socket: Promise<Socket> | null = null;
  #kept: KeptProcess[] = [];
  #listed: ((kept: KeptProcess[]) => void) | null = null;

  /**
   * `program`: the text of keeper.pl. `leftOpen`: {@link discard}ed outputs of ended
   * processes to which background programs may still write; the oldest beyond it is closed.
   */
  constructor(socketPath: string, program: string, leftOpen: number) {
    this.#socketPath = socketPath;
    this.#program = program;
    this.#leftOpen = leftOpen;
  }

  /** Connects to the keeper, and starts one if none runs. */
  async connect(): Promise<void> {
    await this.#connected();
  }

  /**
   * Resolves with the pid when the program runs; {@link listen} gives the events since then.
   * Rejects with {@link NotStarted}.
   */
  async start(id: string, launch: Launch): Promise<number> {
    const socket = await this.#connected();
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    this.#starting.set(id, { resolve, reject });
    this.#events.set(id, []);
    const variables = Object.entries(launch.env).map(([name, value]) => `${name}=${value}`);
    send(
      socket,
      'start',
      id,
      launch.folder,
      settingsOf(launch),
      launch.cwd,
      variables.length,
      ...variables,
      launch.program,
      ...launch.argv,
    );
    try {
      return await promise;
    } catch (error) {
      this.#events.delete(id);
      throw error;
    } finally {
      this.#starting.delete(id);
    }
  }

  /** Lists processes with a record that run or still have writers, also of earlier daemons. */
  async list(): Promise<KeptProcess[]> {
    const socket = await this.#connected();
    const { promise, resolve } = Promise.withResolvers<KeptProcess[]>();
    this.#kept = [];
    this.#listed = resolve;
    send(socket, 'list');
    return await promise;
  }

  /** Calls the listener from now on, at once for what was said before. */
  listen(id: string, listener: ProcessEvents): void {
    const early = this.#events.get(id);
    this.#events.set(id, listener);
    if (Array.isArray(early)) early.forEach((event) => event(listener));
  }

  input(id: string, bytes: Uint8Array): void {
    this.#order('input', id, bytes);
  }

  endInput(id: string): void {
    this.#order('end-input', id);
  }

  /** To the process group; in a terminal to the programs in the foreground. */
  signal(id: string, number: number): void {
    this.#order('signal', id, number);
  }

  resize(id: string, { rows, columns }: { rows: number; columns: number }): void {
    this.#order('size', id, rows, columns);
  }

  /** Asks for one `grown`. Bytes before `offset` are read: a held process may go on. */
  watch(id: string, stream: StreamName, offset: number): void {
    this.#order('watch', id, stream, offset);
  }

  /** Drops the output from now on, and forgets the process when it has ended. */
  discard(id: string): void {
    this.#events.delete(id);
    this.#order('discard', id);
  }

  /** Closes the streams of a process, and forgets it. */
  forget(id: string): void {
    this.#events.delete(id);
    this.#order('forget', id);
  }

  /** Leaves the keeper and its processes alone. */
  async detach(): Promise<void> {
    (await this.#socket)?.destroy();
  }

  #order(...fields: readonly (string | number | Uint8Array)[]): void {
    void this.#socket?.then((socket) => send(socket, ...fields));
  }

  #connected(): Promise<Socket> {
    this.#socket ??= this.#open().catch((error: unknown) => {
      this.#socket = null;
      throw error;
    });
    return this.#socket;
  }

  async #open(): Promise<Socket> {
    const socket = (await opened(this.#socketPath)) ?? (await this.#startKeeper());
    this.#use(socket);
    return socket;
  }

  async #startKeeper(): Promise<Socket> {
    const keeper = spawn('perl', ['-e', this.#program, this.#socketPath, String(this.#leftOpen)], {
      cwd: '/',
      env: { PATH: process.env['PATH'], LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    });
    const late = setTimeout(() => keeper.kill('SIGKILL'), START_DEADLINE_MS);
    try {
      const [said] = (await Promise.race([
        once(keeper.stdout, 'data'),
        once(keeper, 'exit').then(([code, signal]) => {
          throw new Error(`the keeper of processes ended with ${signal ?? `exit code ${code}`}`);
        }),
      ])) as [Buffer];
      if (said.toString() !== 'ready\n') throw new Error('the keeper of processes did not start');
    } finally {
      clearTimeout(late);
      keeper.stdout.destroy();
      keeper.unref();
    }
    const socket = await opened(this.#socketPath);
    if (socket === null) throw new Error('the keeper of processes does not listen');
    return socket;
  }

  #use(socket: Socket): void {
    const frames = new Frames((frame) => this.#take(frame.toString('latin1').split('\0')));
    socket.on('data', (chunk: Buffer) => {
      if (!frames.push(chunk)) socket.destroy();
    });
    socket.on('error', () => undefined);
    socket.once('close', () => this.#lose());
  }

  #lose(): void {
    this.#socket = null;
    for (const starting of this.#starting.values()) starting.reject(new Error('the keeper of processes is gone'));
    for (const id of this.#events.keys()) this.#say(id, (events) => events.lost());
    this.#listed?.([]);
  }

  #say(id: string, event: Event): void {
    const listener = this.#events.get(id);
    if (Array.isArray(listener)) listener.push(event);
    else if (listener !== undefined) event(listener);
  }

  #take([verb, id = '', ...words]: readonly string[]): void {
    switch (verb) {
      case 'started':
        return this.#starting.get(id)?.resolve(Number(words[0]));
      case 'failed':
        return this.#starting.get(id)?.reject(new NotStarted(words[0] ?? '', Number(words[1])));
      case 'taken':
        return this.#say(id, (events) => events.taken(Number(words[0])));
      case 'shut':
        return this.#say(id, (events) => events.taken(null));
      case 'grown':
      case 'closed':
        return this.#say(id, (events) => events.grown(words[0] as StreamName, Number(words[1]), verb === 'closed'));
      case 'ended':
        return this.#say(id, (events) => events.ended(endOf(words), words.slice(3).map(Number)));
      case 'kept':
        return void this.#kept.push({
          id,
          pid: Number(words[0]),
          inputBytes: Number(words[1]),
          end: words[2] === '' ? null : endOf(words.slice(2)),
        });
      case 'listed':
        return this.#listed?.(this.#kept);
    }
  }
}

function endOf([code, signal, timedOut]: readonly string[]): ProcessEnd {
  return { code: Number(code), signal: Number(signal), timedOut: timedOut === '1' };
}
