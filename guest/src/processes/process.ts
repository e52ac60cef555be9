// A process in the guest daemon: its files, and what the keeper says while it has the process.
import { readdirSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { PROCESS_LIMITS } from '@berth/protocol/guest-limits.ts';
import type { GuestProcess } from '@berth/protocol/processes.ts';
import { ChangeSignal } from '../machine/change-signal.ts';
import type { Keeper } from '../keeper/keeper.ts';
import type { StreamName } from '../keeper/launch.ts';
import { pidsKilledForMemory } from './out-of-memory.ts';
import { readEnd, writeLost, writeReason, type ProcessRecord } from './record.ts';
import { ProcessRefused } from './refused.ts';
import { endOf, StreamReader, type Piece } from '../keeper/stream-files.ts';

/** No stream grows beyond it: a watch from here waits for the last writer alone. */
const NEVER = Number.MAX_SAFE_INTEGER;
/** Wait of a write for room. */
const INPUT_WAIT_MS = 5_000;

interface Output {
  pieces: ({ stream: StreamName } & Piece)[];
  closed: StreamName[];
}

export class Process {
  readonly folder: string;
  readonly record: ProcessRecord;
  readonly #keeper: Keeper;
  #end: GuestProcess['end'];
  /** Streams that may still be written to. */
  readonly #open = new Set<StreamName>();
  /** Offsets of the readers that wait. */
  readonly #readers = new Set<ReadonlyMap<StreamName, number>>();
  #storedBytes: number | undefined;
  #isRemoved = false;
  /** Length of the input so far, and of its part that the process has taken. */
  #input = { sent: 0, taken: 0, isOpen: false };
  readonly #changes = new ChangeSignal();

  /** A process that has ended, or whose events {@link follow} takes. */
  constructor(folder: string, record: ProcessRecord, keeper: Keeper) {
    this.folder = folder;
    this.record = record;
    this.#keeper = keeper;
    this.#end = readEnd(folder);
  }

  get view(): GuestProcess {
    const { bootId: _, pid: __, outputBytes: ___, digest: ____, ...known } = this.record;
    return { ...known, end: this.#end };
  }

  get hasEnded(): boolean {
    return this.#end !== null;
  }

  /** Bytes of its files and outputs. */
  get storedBytes(): number {
    if (this.#storedBytes !== undefined) return this.#storedBytes;
    const bytes = bytesIn(this.folder);
    if (this.hasEnded && this.#open.size === 0) this.#storedBytes = bytes;
    return bytes;
  }

  /** Takes the events of a process that the keeper has. `inputBytes`: arrived so far. */
  follow(inputBytes: number): void {
    const { processId, hasInput, tty } = this.record;
    this.#input = { sent: inputBytes, taken: inputBytes, isOpen: hasInput && !this.hasEnded };
    for (const stream of streamsOf(tty)) this.#open.add(stream);
    this.#keeper.listen(processId, {
      grown: (stream, _length, isClosed) => {
        if (isClosed) this.#open.delete(stream);
        this.#changes.changed();
      },
      taken: (bytes) => {
        if (bytes === null) this.#input.isOpen = false;
        else this.#input.taken = bytes;
        this.#changes.changed();
      },
      ended: () => this.#finish(),
      lost: () => {
        if (!this.hasEnded) this.lose();
        this.#open.clear();
        this.#changes.changed();
      },
    });
    for (const stream of this.#open) this.#keeper.watch(processId, stream, NEVER);
  }

  /** Nobody saw its end. */
  lose(): void {
    writeLost(this.folder);
    this.#end = readEnd(this.folder);
    this.#changes.changed();
  }

  /** Notes whether the kernel killed it. `killedPids` is called only if that is unknown. */
  explainEnd(killedPids: () => ReadonlySet<number>): void {
    const { pid } = this.record;
    if (this.#end?.signal !== 'SIGKILL' || this.#end.reason !== null || pid === null) return;
    if (!killedPids().has(pid)) return;
    writeReason(this.folder, 'out_of_memory');
    this.#end = readEnd(this.folder);
  }

  /** Resolves when it has ended, or after the wait. */
  async ended(waitMs: number, signal: AbortSignal): Promise<void> {
    const untilMs = performance.now() + waitMs;
    while (!this.hasEnded && !this.#isRemoved && (await this.#changes.hasChanged(untilMs, signal)));
    this.#requireKept();
  }

  /** Offsets in the streams that it has; with `tail`, at most so many bytes before their ends. */
  startsOf(offsets: ReadonlyMap<StreamName, number>, tail: number | undefined): Map<StreamName, number> {
    const own = streamsOf(this.record.tty).filter((stream) => offsets.has(stream));
    return new Map(
      own.map((stream) => {
        const from = offsets.get(stream) ?? 0;
        return [stream, tail === undefined ? from : Math.max(from, endOf(this.folder, stream) - tail)];
      }),
    );
  }

  /** Returns the stored bytes from the offsets on; with a wait, once there are some. */
  async read(offsets: ReadonlyMap<StreamName, number>, waitMs: number, signal: AbortSignal): Promise<Output> {
    const untilMs = performance.now() + waitMs;
    for (;;) {
      // In this order: what the last writer wrote is stored before its stream is closed.
      this.#requireKept();
      const closed = [...offsets.keys()].filter((stream) => !this.#open.has(stream));
      const found = [...offsets].map(([stream, offset]) => this.#pieceOf(stream, offset));
      const pieces = found.flatMap(({ piece }) => (piece.bytes.length > 0 ? [piece] : []));
      const isWhole = (name: StreamName): boolean => found.some(({ piece, isLast }) => piece.stream === name && isLast);
      const output = { pieces, closed: closed.filter(isWhole) };
      if (pieces.length > 0 || closed.length === offsets.size) return output;
      this.#readers.add(offsets);
      this.#watch();
      const hasChanged = await this.#changes.hasChanged(untilMs, signal);
      this.#readers.delete(offsets);
      this.#watch();
      if (!hasChanged) return output;
    }
  }

  /** Has the keeper tell when a stream grows beyond the offset of a reader that waits. */
  #watch(): void {
    for (const stream of this.#open) {
      const offsets = [...this.#readers].map((reader) => reader.get(stream) ?? NEVER);
      this.#keeper.watch(this.record.processId, stream, Math.min(NEVER, ...offsets));
    }
  }

  /** Returns the length of the input so far. */
  async write(asked: number | null, bytes: Buffer, isEnd: boolean, signal: AbortSignal): Promise<number> {
    const { processId } = this.record;
    if (asked !== null && asked > this.#input.sent)
      throw new ProcessRefused('process_input_gap', `the input has ${this.#input.sent} bytes so far, not ${asked}`);
    // A repeated call may write them while this one waits.
    const unwritten = (): Buffer => (asked === null ? bytes : bytes.subarray(this.#input.sent - asked));
    const untilMs = performance.now() + INPUT_WAIT_MS;
    for (;;) {
      this.#requireKept();
      const added = unwritten();
      if (added.length === 0 && !isEnd) return this.#input.sent;
      if (!this.#input.isOpen) throw new ProcessRefused('process_over', 'the process reads no input');
      if (this.#input.sent - this.#input.taken + added.length <= PROCESS_LIMITS.inputBytes) {
        if (added.length > 0) this.#keeper.input(processId, added);
        this.#input.sent += added.length;
        if (isEnd) this.#keeper.endInput(processId);
        this.#input.isOpen = !isEnd;
        return this.#input.sent;
      }
      if (!(await this.#changes.hasChanged(untilMs, signal)))
        throw new ProcessRefused('process_input_full', 'the process has not read its input so far');
    }
  }

  signal(name: NodeJS.Signals): void {
    if (this.hasEnded) throw new ProcessRefused('process_over', 'the process has ended');
    this.#keeper.signal(this.record.processId, constants.signals[name]);
  }

  resize(size: { rows: number; columns: number }): void {
    if (!this.record.tty) throw new ProcessRefused('process_has_no_terminal', 'the process has no terminal');
    this.#keeper.resize(this.record.processId, size);
  }

  /** Kills it with its process group, and closes its streams, before its files are removed. */
  remove(): void {
    const { processId } = this.record;
    if (!this.hasEnded) this.#keeper.signal(processId, constants.signals.SIGKILL);
    this.#keeper.forget(processId);
    this.#isRemoved = true;
    this.#open.clear();
    this.#changes.changed();
  }

  #requireKept(): void {
    if (this.#isRemoved) throw new ProcessRefused('process_not_found', 'the process has been removed');
  }

  /** The stored bytes up to the limit, or to a gap. `isLast`: nothing is stored after them. */
  #pieceOf(stream: StreamName, offset: number): { piece: Output['pieces'][number]; isLast: boolean } {
    const reader = new StreamReader(this.folder, stream, offset);
    const { readBytes } = PROCESS_LIMITS;
    const first = reader.read(readBytes);
    const parts = [first.bytes];
    let length = first.bytes.length;
    let isLast = length === 0;
    while (!isLast && length < readBytes) {
      const next = reader.read(readBytes - length);
      isLast = next.bytes.length === 0;
      if (next.offset !== first.offset + length) break;
      parts.push(next.bytes);
      length += next.bytes.length;
    }
    reader.close();
    return { piece: { stream, offset: first.offset, bytes: Buffer.concat(parts) }, isLast };
  }

  #finish(): void {
    this.#end = readEnd(this.folder);
    this.#input.isOpen = false;
    // The disk had no room for the record.
    if (this.#end === null) this.lose();
    this.explainEnd(pidsKilledForMemory);
    this.#changes.changed();
  }
}

function streamsOf(tty: boolean): readonly StreamName[] {
  return tty ? ['output'] : ['stdout', 'stderr'];
}

function bytesIn(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => {
      // The keeper removes files meanwhile.
      return sum + (statSync(join(parentPath, name), { throwIfNoEntry: false })?.size ?? 0);
    }, 0);
}
