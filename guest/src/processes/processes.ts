// The processes of the tenant: starts them, keeps what is known of them after their end, and takes
// them over from an earlier daemon.
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getSystemErrorName } from 'node:util';
import { hasCode, nullOn } from '@berth/os/errors.ts';
import type { GuestProcessStart } from '@berth/protocol/calls/processes.ts';
import { PROCESS_LIMITS } from '@berth/protocol/guest-limits.ts';
import type { GuestProcess } from '@berth/protocol/processes.ts';
import { NotStarted } from '../keeper/keeper.ts';
import { removeFolder } from '../keeper/stream-files.ts';
import type { Launcher } from '../keeper/launcher.ts';
import type { GuestConfig } from '../machine/config.ts';
import { pidsKilledForMemory } from './out-of-memory.ts';
import { Process } from './process.ts';
import { readEnd, readRecord, shownText, writeRecord, type ProcessRecord } from './record.ts';
import { ProcessRefused } from './refused.ts';

export class Processes {
  readonly #config: GuestConfig;
  readonly #launcher: Launcher;
  readonly #folder: string;
  readonly #bootId: string;
  /** Oldest first. */
  readonly #known = new Map<string, Process>();
  readonly #starting = new Map<string, Promise<Process>>();

  constructor(config: GuestConfig, launcher: Launcher) {
    this.#config = config;
    this.#launcher = launcher;
    this.#folder = join(config.stateFolder, 'processes');
    this.#bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  }

  /** Takes over what an earlier daemon has started. */
  async recover(): Promise<void> {
    const { keeper } = this.#launcher;
    let killed: ReadonlySet<number> | undefined;
    const killedPids = (): ReadonlySet<number> => (killed ??= pidsKilledForMemory());
    const kept = new Map((await keeper.list()).map((process) => [process.id, process]));
    const ids = nullOn(['ENOENT'], () => readdirSync(this.#folder)) ?? [];
    const found = ids.map((id) => ({ id, record: readRecord(join(this.#folder, id)) }));
    found.sort((one, other) => (one.record?.startedUnixMs ?? 0) - (other.record?.startedUnixMs ?? 0));
    for (const { id, record } of found) {
      const held = kept.get(id);
      const folder = join(this.#folder, id);
      if (record === null || (record.pid === null && held === undefined && readEnd(folder) === null)) {
        // Its start was interrupted: the caller repeats the call.
        removeFolder(folder);
        continue;
      }
      kept.delete(id);
      const process = new Process(folder, { ...record, pid: record.pid ?? held?.pid ?? null }, keeper);
      this.#known.set(id, process);
      if (held !== undefined) process.follow(held.inputBytes);
      else if (!process.hasEnded) process.lose();
      if (record.bootId === this.#bootId) process.explainEnd(killedPids);
    }
    for (const { id } of kept.values()) {
      keeper.signal(id, 9);
      keeper.forget(id);
    }
  }

  /** A known id is not started again. Rejects with {@link ProcessRefused} or `CommandRefused`. */
  async start(
    id: string,
    asked: GuestProcessStart,
  ): Promise<{ process: GuestProcess; isKnown: boolean; digest: string }> {
    const known = this.#known.get(id);
    if (known !== undefined) return { process: known.view, isKnown: true, digest: known.record.digest };
    let starting = this.#starting.get(id);
    if (starting === undefined) {
      this.#makeRoom();
      starting = this.#start(id, asked).finally(() => this.#starting.delete(id));
      this.#starting.set(id, starting);
    }
    const process = await starting;
    return { process: process.view, isKnown: false, digest: process.record.digest };
  }

  list(): GuestProcess[] {
    return [...this.#known.values()].map(({ view }) => view).toReversed();
  }

  find(id: string): Process {
    const process = this.#known.get(id);
    if (process === undefined) throw new ProcessRefused('process_not_found', 'there is no such process');
    return process;
  }

  /** Kills it if it runs, and removes what is stored of it. Returns false if there is none. */
  remove(id: string): boolean {
    this.#known.get(id)?.remove();
    const isKnown = this.#known.delete(id);
    removeFolder(join(this.#folder, id));
    return isKnown;
  }

  async #start(id: string, asked: GuestProcessStart): Promise<Process> {
    const {
      command = null,
      argv,
      cwd,
      env,
      user,
      terminal,
      stdin,
      keepAwake,
      name,
      limitSeconds,
      outputBytes,
      digest,
    } = asked;
    const folder = join(this.#folder, id);
    const tty = terminal !== undefined;
    const record: ProcessRecord = {
      processId: id,
      name: name === null ? null : shownText(name),
      command: shownText(command ?? (argv ?? []).join(' ')),
      cwd: shownText(cwd ?? this.#config.codeFolder),
      user: user ?? this.#config.user.name,
      tty,
      startedUnixMs: Date.now(),
      bootId: this.#bootId,
      pid: null,
      hasInput: stdin || tty,
      keepAwake,
      outputBytes,
      digest,
    };
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      writeRecord(folder, record);
      const { pid } = await this.#launcher.start({
        command,
        argv,
        options: { cwd, env, user },
        ...(terminal === undefined ? {} : { terminal: { rows: terminal.rows, columns: terminal.cols } }),
        hasInput: stdin || tty,
        keepBytes: outputBytes,
        holds: false,
        limitMs: limitSeconds === null ? undefined : limitSeconds * 1_000,
        place: { id, folder },
      });
      return this.#started(folder, { ...record, pid });
    } catch (error) {
      removeFolder(folder);
      throw isOutOfSpace(error) ? new ProcessRefused('guest_disk_full', 'no space is left for the process') : error;
    }
  }

  #started(folder: string, record: ProcessRecord): Process {
    const process = new Process(folder, record, this.#launcher.keeper);
    try {
      writeRecord(folder, record);
    } catch (error) {
      process.remove();
      throw error;
    }
    this.#known.set(record.processId, process);
    process.follow(0);
    return process;
  }

  /** Removes the oldest of those that have ended, until there is room. */
  #makeRoom(): void {
    const all = [...this.#known];
    if (all.filter(([, { hasEnded }]) => !hasEnded).length + this.#starting.size >= PROCESS_LIMITS.live) {
      throw new ProcessRefused(
        'process_limit',
        `${PROCESS_LIMITS.live} processes run in this sandbox already; end one first`,
      );
    }
    const ended = all.filter(([, { hasEnded }]) => hasEnded);
    if (ended.length === 0) return;
    let bytes = all.reduce((sum, [, { storedBytes }]) => sum + storedBytes, 0);
    let count = ended.length;
    for (const [id, { storedBytes }] of ended) {
      if (count < PROCESS_LIMITS.ended && bytes < PROCESS_LIMITS.storedBytes) return;
      count -= 1;
      bytes -= storedBytes;
      this.remove(id);
    }
  }
}

/** Whether the disk of processes is full, also as the cause of a refused start. */
function isOutOfSpace(error: unknown): boolean {
  if (error instanceof NotStarted) return ['ENOSPC', 'EDQUOT'].includes(getSystemErrorName(-error.errno));
  return hasCode(error, 'ENOSPC', 'EDQUOT') || (error instanceof Error && isOutOfSpace(error.cause));
}
