// Client of QEMU's control socket (QMP): greeting, commands with deadlines, events. Does not
// interpret commands. The other end may be compromised: lines, events and pending commands are
// bounded, and a protocol violation closes the connection.
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { RateLimit } from '@berth/os/rate-limit.ts';
import { hasCode } from '@berth/os/errors.ts';

/**
 * Longest accepted line. Expected responses have a few KiB (query-hotpluggable-cpus);
 * `ringbuf-read` has at most 6 x 64 KiB.
 */
const LINE_MAX_BYTES = 524_288;
const COMMAND_DEADLINE_MS = 10_000;
const CONNECT_DEADLINE_MS = 20_000;
/** QEMU opens its socket about 40 ms after its start; poll interval. */
const CONNECT_STEP_MS = 2;
const COMMANDS_WAITING_MAX = 64;
/**
 * Limit of unsolicited bytes per second, and burst after silence. An event has about 200 bytes. A
 * guest can trigger some events at will, and each costs time of this daemon, which serves all VMs.
 */
const EVENT_BYTES_PER_SECOND = 65_536;
const EVENT_BURST_BYTES = 1_048_576;

const message = z.object({
  QMP: z.unknown().optional(),
  id: z.number().optional(),
  return: z.unknown().optional(),
  error: z.object({ class: z.string().max(256), desc: z.string().max(4_096) }).optional(),
  event: z.string().max(128).optional(),
  data: z.record(z.string(), z.unknown()).optional(),
});

export interface QmpEvent {
  name: string;
  data: Readonly<Record<string, unknown>>;
}

export interface QmpCall {
  signal: AbortSignal;
  deadlineMs?: number;
  /**
   * Called when the command is sent: from then on QEMU may execute it, with or without a response.
   */
  onSent?: (() => void) | undefined;
}

/** A command that QEMU refused or did not answer, or a closed connection. */
export class QmpError extends Error {
  override readonly name = 'QmpError';
  /** The connection is closed, most likely because QEMU exited. */
  readonly over: boolean;

  constructor(message: string, options?: ErrorOptions & { over?: boolean }) {
    super(message, options);
    this.over = options?.over ?? false;
  }
}

interface Waiting {
  command: string;
  settle: PromiseWithResolvers<unknown>;
}

export class QmpSession {
  /** Resolves with the reason when the connection closes. Never rejects. */
  readonly closed: Promise<string>;
  readonly #socket: Socket;
  readonly #listeners = new Set<(event: QmpEvent) => void>();
  readonly #waiting = new Map<number, Waiting>();
  readonly #greeted = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<string>();
  readonly #eventLimit = new RateLimit(EVENT_BYTES_PER_SECOND, EVENT_BURST_BYTES);
  #chunks: Buffer[] = [];
  #chunkBytes = 0;
  #nextId = 1;
  #closeReason: string | null = null;

  constructor(socket: Socket, onEvent: (event: QmpEvent) => void) {
    this.#socket = socket;
    this.#listeners.add(onEvent);
    this.closed = this.#closed.promise;
    // `openQmp` may never await the greeting.
    this.#greeted.promise.catch(() => undefined);
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', (error) => this.#end(error.message));
    socket.on('close', () => this.#end('the connection was closed'));
  }

  /** Waits for the greeting and leaves negotiation mode. */
  async negotiate(call: QmpCall): Promise<void> {
    await within(this.#greeted.promise, 'greeting', call);
    await this.command('qmp_capabilities', undefined, z.unknown(), call);
  }

  /**
   * Runs a command and parses its return value. Rejects with {@link QmpError}, or with the signal's
   * reason.
   */
  async command<T>(execute: string, parameters: object | undefined, answer: z.ZodType<T>, call: QmpCall): Promise<T> {
    call.signal.throwIfAborted();
    if (this.#closeReason !== null) throw new QmpError(`${execute}: ${this.#closeReason}`, { over: true });

    if (this.#waiting.size >= COMMANDS_WAITING_MAX)
      throw new QmpError(`${execute}: ${COMMANDS_WAITING_MAX} commands already wait for QEMU`);

    const id = this.#nextId++;
    const settle = Promise.withResolvers<unknown>();
    this.#waiting.set(id, { command: execute, settle });
    call.onSent?.();
    this.#socket.write(
      `${JSON.stringify({ execute, id, ...(parameters === undefined ? {} : { arguments: parameters }) })}\n`,
    );
    try {
      const returned = answer.safeParse(await within(settle.promise, execute, call));
      if (!returned.success) throw new QmpError(`${execute}: QEMU returned an unexpected response`);

      return returned.data;
    } finally {
      this.#waiting.delete(id);
    }
  }

  /** Calls the listener for each event from now on; returns the unsubscribe function. */
  subscribe(listener: (event: QmpEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Lets the process exit while the connection is open. */
  unref(): void {
    this.#socket.unref();
  }

  /** Closes the connection; QEMU keeps running. */
  close(): void {
    this.#end('the session was closed');
  }

  #read(chunk: Buffer): void {
    let rest = chunk;
    for (;;) {
      const lineEnd = rest.indexOf(10);
      const bytes = this.#chunkBytes + (lineEnd < 0 ? rest.length : lineEnd);
      if (bytes > LINE_MAX_BYTES) {
        this.#end(`QEMU sent a line of more than ${LINE_MAX_BYTES} bytes`);
        return;
      }
      if (lineEnd < 0) {
        this.#chunks.push(rest);
        this.#chunkBytes = bytes;
        return;
      }
      const line = Buffer.concat([...this.#chunks, rest.subarray(0, lineEnd)]).toString('utf8');
      this.#chunks = [];
      this.#chunkBytes = 0;
      rest = rest.subarray(lineEnd + 1);
      this.#take(line);
      if (this.#closeReason !== null) return;
    }
  }

  #take(line: string): void {
    let parsed: z.infer<typeof message>;
    try {
      parsed = message.parse(JSON.parse(line));
    } catch {
      this.#end('QEMU sent a line that is not QMP');
      return;
    }
    const waiting = parsed.id === undefined ? undefined : this.#waiting.get(parsed.id);
    if (waiting === undefined && !this.#eventLimit.take(line.length)) {
      this.#end(`QEMU sent more than ${EVENT_BYTES_PER_SECOND} unsolicited bytes a second`);
      return;
    }
    if (parsed.event !== undefined) {
      for (const listener of [...this.#listeners]) listener({ name: parsed.event, data: parsed.data ?? {} });
    } else if (parsed.QMP !== undefined) {
      this.#greeted.resolve();
    } else if (parsed.error) {
      // Ignored if the command's deadline has passed.
      waiting?.settle.reject(new QmpError(`${waiting.command}: ${parsed.error.desc}`));
    } else {
      waiting?.settle.resolve(parsed.return);
    }
  }

  #end(reason: string): void {
    if (this.#closeReason !== null) return;

    this.#closeReason = reason;
    this.#socket.destroy();
    this.#greeted.reject(new QmpError(`QMP: ${reason}`, { over: true }));
    for (const waiting of this.#waiting.values())
      waiting.settle.reject(new QmpError(`${waiting.command}: ${reason}`, { over: true }));

    this.#waiting.clear();
    this.#closed.resolve(reason);
  }
}

/**
 * Connects to QEMU's socket as soon as it exists, and negotiates. Rejects with {@link QmpError}
 * after the deadline, or with the signal's reason (callers abort when the process exits).
 */
export async function openQmp(path: string, onEvent: (event: QmpEvent) => void, call: QmpCall): Promise<QmpSession> {
  const deadlineMs = call.deadlineMs ?? CONNECT_DEADLINE_MS;
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    call.signal.throwIfAborted();
    try {
      const session = new QmpSession(await connected(path), onEvent);
      try {
        await session.negotiate({ signal: call.signal, deadlineMs: Math.max(1, deadline - performance.now()) });
        return session;
      } catch (error) {
        session.close();
        throw error;
      }
    } catch (error) {
      if (!hasCode(error, 'ENOENT', 'ECONNREFUSED')) throw error;

      if (performance.now() > deadline)
        throw new QmpError(`QEMU did not open its control socket within ${deadlineMs / 1_000} s`, { cause: error });

      await delay(CONNECT_STEP_MS, undefined, { signal: call.signal });
    }
  }
}

function connected(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      resolve(socket);
    });
  });
}

async function within<T>(promise: Promise<T>, what: string, call: QmpCall): Promise<T> {
  const deadlineMs = call.deadlineMs ?? COMMAND_DEADLINE_MS;
  const cut = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => cut.reject(new QmpError(`${what}: no response from QEMU within ${deadlineMs / 1_000} s`)),
    deadlineMs,
  );
  const onAbort = (): void => cut.reject(call.signal.reason);
  call.signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([promise, cut.promise]);
  } finally {
    clearTimeout(timer);
    call.signal.removeEventListener('abort', onAbort);
  }
}
