// Processes of a sandbox. The class of one is loaded on first use.
import type { Calls } from '../calls/calls.ts';
import { newKey } from '../calls/new-key.ts';
import type { Process as ProcessData, StartProcessRequest } from '../generated/raw/index.ts';
import type { SandboxProcess } from './process.ts';
import { BerthError, errorWith, mayRetry } from '../transport/errors.ts';
import type { CallOptions } from '../transport/transport.ts';

/** Options of {@link SandboxProcesses.start}; `timeoutMs` limits the call, not the process. */
export interface SpawnOptions extends CallOptions, Omit<StartProcessRequest, 'command' | 'argv'> {
  /** A repeated call with the same key returns the process of the first. */
  idempotencyKey?: string;
}

/** Includes the time of a wake. */
const START_TIMEOUT_MS = 90_000;
const LOST = 'The process may have started: list the processes before you retry, or start with an `idempotencyKey`.';
const LOST_WITH_KEY = 'Repeat the call with the same idempotencyKey: it returns the process, or starts it.';

export class SandboxProcesses {
  readonly #calls: Calls;
  readonly #sandboxId: string;

  /** Constructed by the SDK. */
  constructor(calls: Calls, sandboxId: string) {
    this.#calls = calls;
    this.#sandboxId = sandboxId;
  }

  /**
   * Starts a process from a shell line, or from a program with its arguments. It outlives this
   * program, its connection and a sleep of the sandbox. Retried after a lost response: it starts
   * once.
   */
  async start(
    command: string | readonly string[],
    { signal, timeoutMs = START_TIMEOUT_MS, idempotencyKey, ...options }: SpawnOptions = {},
  ): Promise<SandboxProcess> {
    const { raw, with: set } = this.#calls;
    const body = { ...options, ...(typeof command === 'string' ? { command } : { argv: [...command] }) };
    const path = { sandboxId: this.#sandboxId };
    const headers = { 'Idempotency-Key': idempotencyKey ?? newKey() };
    const isKnown = idempotencyKey !== undefined;
    const whenLost = isKnown ? LOST_WITH_KEY : LOST;
    const notes = { signal, timeoutMs, repeatable: true, retried: true, whenLost };
    try {
      return await this.#process((await raw.startProcess({ path, body, headers, ...set(notes) })).process, !isKnown);
    } catch (error) {
      if (isKnown || !(error instanceof BerthError)) throw error;
      // Another call has another key: it may start a second process.
      throw errorWith(error, { retryable: error.unsent || mayRetry(error.status ?? 0, error.code, false) });
    }
  }

  /** Processes that run, and the last that have ended, newest first. Wakes nothing. */
  async list(options: CallOptions = {}): Promise<SandboxProcess[]> {
    const { raw, with: set } = this.#calls;
    const { processes } = await raw.listProcesses({ path: { sandboxId: this.#sandboxId }, ...set(options) });
    return await Promise.all(processes.map((data) => this.#process(data)));
  }

  async get(processId: string, options: CallOptions = {}): Promise<SandboxProcess> {
    const { raw, with: set } = this.#calls;
    const path = { sandboxId: this.#sandboxId, processId };
    return await this.#process((await raw.getProcess({ path, ...set(options) })).process);
  }

  async #process(data: ProcessData, isNew = false): Promise<SandboxProcess> {
    const { SandboxProcess } = await import('./process.ts');
    return new SandboxProcess(this.#calls, data, isNew);
  }
}
