// Processes of guests in memory, for tests: their output and end are what a test says.
import type { Duplex } from 'node:stream';
import type { GuestProcessStart } from '@berth/protocol/calls/processes.ts';
import { PROCESS_LIMITS } from '@berth/protocol/guest-limits.ts';
import type { GuestProcess } from '@berth/protocol/processes.ts';
import { controlFrame, streamFrame } from '@berth/protocol/terminal-frames.ts';
import { ExecRefusal } from './exec-refusal.ts';

/** Longest frame of a stream. */
const FRAME_BYTES = 65_535;

type StreamName = 'stdout' | 'stderr' | 'output';

/** A call as received. `processId` is empty for the list, `verb` for the process itself. */
interface ProcessCall {
  vmId: string;
  method: string;
  processId: string;
  verb: string;
  query: URLSearchParams;
  body: Record<string, unknown>;
}

export class FakeProcess {
  readonly asked: GuestProcessStart;
  readonly view: GuestProcess;
  readonly streams: { [name in StreamName]?: { start: number; bytes: Buffer } };
  input = Buffer.alloc(0);
  inputIsOpen: boolean;
  /** Bytes of the input that it has read; undefined: all. */
  readBytes: number | undefined;
  /** False: a program in the background holds its outputs open after its end. */
  outputsAreClosed = true;
  isRemoved = false;
  /** Reads of its output so far. */
  reads = 0;
  readonly signals: string[] = [];
  readonly sizes: unknown[] = [];
  #changed = Promise.withResolvers<void>();

  constructor(processId: string, asked: GuestProcessStart) {
    const { command, argv = [], cwd = '/code', user = 'berth', name, terminal } = asked;
    this.asked = asked;
    const tty = terminal !== undefined;
    const shown = (command ?? argv.join(' ')).slice(0, PROCESS_LIMITS.shownCharacters);
    const hasInput = asked.stdin || tty;
    this.view = {
      processId,
      name,
      command: shown,
      cwd,
      user,
      tty,
      hasInput,
      keepAwake: asked.keepAwake,
      startedUnixMs: Date.now(),
      end: null,
    };
    this.streams = tty ? { output: empty() } : { stdout: empty(), stderr: empty() };
    this.inputIsOpen = hasInput;
  }

  get change(): Promise<void> {
    return this.#changed.promise;
  }

  /** `lost`: bytes before these that are no longer kept. */
  write(stream: StreamName, bytes: string | Buffer, lost = 0): void {
    const known = this.streams[stream];
    if (known === undefined) throw new Error(`it has no ${stream}`);
    if (lost > 0) this.streams[stream] = { start: known.start + known.bytes.length + lost, bytes: Buffer.from(bytes) };
    else known.bytes = Buffer.concat([known.bytes, Buffer.from(bytes)]);
    const kept = this.streams[stream] ?? empty();
    const dropped = Math.max(0, kept.bytes.length - this.asked.outputBytes);
    this.streams[stream] = { start: kept.start + dropped, bytes: kept.bytes.subarray(dropped) };
    this.#notify();
  }

  end(end: Partial<NonNullable<GuestProcess['end']>> = {}): void {
    this.view.end = { exitCode: 0, signal: null, reason: null, endedUnixMs: Date.now(), ...end };
    this.inputIsOpen = false;
    this.#notify();
  }

  remove(): void {
    this.isRemoved = true;
    this.#notify();
  }

  /** The last program in the background has ended. */
  closeOutputs(): void {
    this.outputsAreClosed = true;
    this.#notify();
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

export class ProcessGuests {
  /** By VM, oldest first. */
  readonly #known = new Map<string, Map<string, FakeProcess>>();
  readonly #broken = new Map<string, PromiseWithResolvers<never>>();

  of(vmId: string): Map<string, FakeProcess> {
    const known = this.#known.get(vmId) ?? new Map<string, FakeProcess>();
    this.#known.set(vmId, known);
    return known;
  }

  /** Ends the calls in progress to a VM, as its end does. */
  breakCalls(vmId: string): void {
    this.#broken.get(vmId)?.reject(new ExecRefusal('vm_not_running', 'the VM has ended'));
    this.#broken.delete(vmId);
  }

  /** Answers a call as a guest does. */
  answer = async (call: ProcessCall, gone: AbortSignal): Promise<unknown> => {
    const broken = this.#broken.get(call.vmId) ?? Promise.withResolvers<never>();
    this.#broken.set(call.vmId, broken);
    return await Promise.race([this.#answer(call, gone), broken.promise]);
  };

  /** Script of a stream with the output of a process, as a guest sends it. */
  follow(vmId: string, processId: string, query: URLSearchParams): (caller: Duplex) => void {
    const process = this.of(vmId).get(processId);
    if (process === undefined) throw new ExecRefusal('process_not_found', 'no such process');
    const broken = this.#broken.get(vmId) ?? Promise.withResolvers<never>();
    this.#broken.set(vmId, broken);
    return (caller) => {
      broken.promise.catch(() => caller.destroy());
      follow(process, query, caller.resume()).catch(() => caller.destroy());
    };
  }

  async #answer(call: ProcessCall, gone: AbortSignal): Promise<unknown> {
    const { vmId, method, processId, verb, query, body } = call;
    const all = this.of(vmId);
    if (processId === '') return { processes: [...all.values()].map(({ view }) => view).toReversed() };
    if (method === 'PUT') return start(all, processId, body as unknown as GuestProcessStart);
    if (method === 'DELETE') {
      all.get(processId)?.remove();
      return { isRemoved: all.delete(processId) };
    }
    const process = all.get(processId);
    if (process === undefined) throw new ExecRefusal('process_not_found', 'no such process');
    if (verb === 'output') return await read(process, query, gone);
    if (verb === 'input') return write(process, body as { offset: number | null; base64: string; end: boolean });
    if (verb === 'signal') {
      if (process.view.end !== null) throw new ExecRefusal('process_over', 'it is over');
      process.signals.push(String(body['signal']));
    } else if (verb === 'size') {
      if (!process.view.tty) throw new ExecRefusal('process_has_no_terminal', 'it has none');
      process.sizes.push(body);
    } else {
      const untilMs = performance.now() + Number(query.get('waitMs') ?? 0);
      while (process.view.end === null && !process.isRemoved && performance.now() < untilMs && !gone.aborted)
        await passed(process, query, gone);
      if (process.isRemoved) throw new ExecRefusal('process_not_found', 'it was removed');
    }
    return { process: process.view };
  }
}

function start(all: Map<string, FakeProcess>, processId: string, asked: GuestProcessStart): object {
  const known = all.get(processId);
  if (known !== undefined) return { process: known.view, isKnown: true, digest: known.asked.digest };
  const created = new FakeProcess(processId, asked);
  all.set(processId, created);
  return { process: created.view, isKnown: false, digest: asked.digest };
}

interface Read {
  process: GuestProcess;
  starts: { [name in StreamName]?: number };
  pieces: { stream: StreamName; offset: number; base64: string }[];
  closed: string[];
}

async function read(process: FakeProcess, query: URLSearchParams, gone: AbortSignal): Promise<Read> {
  const starts: { [name in StreamName]?: number } = {};
  for (const [name, { start: first, bytes }] of Object.entries(process.streams)) {
    const asked = query.get(name);
    const tail = query.get('tail');
    if (asked === null) continue;
    starts[name as StreamName] = tail === null ? Number(asked) : Math.max(0, first + bytes.length - Number(tail));
  }
  process.reads += 1;
  const piecesNow = (): Read['pieces'] =>
    Object.entries(starts).flatMap(([name, asked]) => {
      const { start: first, bytes } = process.streams[name as StreamName] ?? empty();
      const offset = Math.max(asked, first);
      const found = bytes.subarray(offset - first, offset - first + PROCESS_LIMITS.readBytes);
      return found.length === 0 ? [] : [{ stream: name as StreamName, offset, base64: found.toString('base64') }];
    });
  const isOpen = (): boolean => process.view.end === null || !process.outputsAreClosed;
  if (piecesNow().length === 0 && isOpen()) await passed(process, query, gone);
  if (process.isRemoved) throw new ExecRefusal('process_not_found', 'no such process');
  const isDone = !isOpen();
  const pieces = piecesNow();
  const isAll = (name: string): boolean => {
    const { start: first, bytes } = process.streams[name as StreamName] ?? empty();
    const piece = pieces.find(({ stream }) => stream === name);
    return piece === undefined || piece.offset + Buffer.byteLength(piece.base64, 'base64') === first + bytes.length;
  };
  const closed = isDone ? Object.keys(starts).filter(isAll) : [];
  return { process: process.view, starts, pieces, closed };
}

async function follow(process: FakeProcess, query: URLSearchParams, caller: Duplex): Promise<void> {
  const gone = new AbortController();
  caller.once('close', () => gone.abort());
  const next = new URLSearchParams({ ...Object.fromEntries(query), waitMs: '1000' });
  for (let isFirst = true; !gone.signal.aborted; isFirst = false) {
    const { starts, pieces, closed } = await read(process, next, gone.signal);
    if (isFirst) caller.write(controlFrame({ starts }));
    next.delete('tail');
    for (const [stream, start] of Object.entries(starts)) next.set(stream, String(start));
    for (const { stream, offset, base64 } of pieces) {
      const bytes = Buffer.from(base64, 'base64');
      const lost = offset - (starts[stream] ?? 0);
      if (lost > 0) caller.write(controlFrame({ lost: { stream, bytes: lost } }));
      for (let at = 0; at < bytes.length; at += FRAME_BYTES)
        caller.write(streamFrame(stream, bytes.subarray(at, at + FRAME_BYTES)));
      next.set(stream, String(offset + bytes.length));
    }
    if (closed.length === Object.keys(starts).length) {
      caller.end(controlFrame({ complete: true }));
      return;
    }
  }
}

function write(process: FakeProcess, { offset, base64, end }: { offset: number | null; base64: string; end: boolean }) {
  const from = offset ?? process.input.length;
  if (from > process.input.length) throw new ExecRefusal('process_input_gap', 'a hole');
  const added = Buffer.from(base64, 'base64').subarray(process.input.length - from);
  if ((added.length > 0 || end) && !process.inputIsOpen) throw new ExecRefusal('process_over', 'it reads no input');
  const unread = process.input.length - (process.readBytes ?? process.input.length);
  if (unread + added.length > PROCESS_LIMITS.inputBytes) throw new ExecRefusal('process_input_full', 'it is full');
  process.input = Buffer.concat([process.input, added]);
  if (end) process.inputIsOpen = false;
  return { offset: process.input.length };
}

/** Waits as long as the call asks for, or for a change. */
async function passed(process: FakeProcess, query: URLSearchParams, gone: AbortSignal): Promise<void> {
  const waited = Promise.withResolvers<void>();
  const timer = setTimeout(waited.resolve, Number(query.get('waitMs') ?? 0));
  gone.addEventListener('abort', () => waited.resolve(), { once: true });
  await Promise.race([waited.promise, process.change]);
  clearTimeout(timer);
}

function empty(): { start: number; bytes: Buffer } {
  return { start: 0, bytes: Buffer.alloc(0) };
}
