// One sandbox: what is known of it, and what can be done to it.
import type { Calls } from './calls.ts';
import { CommandResult, runningCommand, type RunningCommand } from './command.ts';
import { BerthError } from './transport/errors.ts';
import { SandboxFiles } from './files.ts';
import { SandboxPreviews } from './previews.ts';
import { SANDBOX_STATES } from './generated/contract-tables.ts';
import { EXEC_LIMITS } from './generated/limits.ts';
import type { LiveMetrics, MetricsSample, Sandbox as SandboxData, SandboxStatus } from './generated/raw/index.ts';
import { SandboxStreams } from './sandbox-streams.ts';
import { Deadline, delay } from './transport/time.ts';
import type { CallOptions } from './transport/transport.ts';

export type { LiveMetrics, MetricsSample, SandboxData, SandboxStatus };

/** What {@link Sandbox.exec} takes. */
export interface ExecOptions extends CallOptions {
  /** How long the command may run, in seconds: 1 to 600, by default 120. */
  timeoutSeconds?: number;
}

/** What calls take that begin a transition. */
export interface TransitionOptions extends CallOptions {
  /** Whether to wait for the transition to end; by default yes. */
  wait?: boolean;
}

/** What {@link Sandbox.resize} takes: at least one of the three; what is missing stays. */
export interface Size {
  vcpu?: number;
  memoryGb?: number;
  /** A disk only grows. */
  diskGb?: number;
}

/** A status, several, or a look at the sandbox that says whether it is as it should be. */
export type Awaited =
  | SandboxStatus
  | (string & {})
  | readonly (SandboxStatus | (string & {}))[]
  | ((sandbox: SandboxData) => boolean);

const FIRST_LOOK_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
const SLOWER_BY = 1.5;
/** How long a transition is waited for, unless the call says otherwise. */
export const TRANSITION_TIMEOUT_MS = 180_000;
/** What a command may take beyond its own time: a wake before it, and the way. */
const BEYOND_COMMAND_MS = 90_000;
const AWAKE = ['running', 'ready'] as const;

/** A machine of a project. */
export class Sandbox extends SandboxStreams {
  /** Its files. */
  readonly files: SandboxFiles;
  /** Links to its ports. */
  readonly previews: SandboxPreviews;
  readonly #calls: Calls;
  #data: SandboxData;

  /** Made by `berth.sandboxes`. */
  constructor(calls: Calls, data: SandboxData) {
    super(calls, data.id);
    this.#calls = calls;
    this.#data = data;
    this.files = new SandboxFiles(calls, data.id);
    this.previews = new SandboxPreviews(calls, data.id);
  }

  /** All that was answered of it the last time. */
  get data(): SandboxData {
    return this.#data;
  }

  get name(): string {
    return this.#data.name;
  }

  /**
   * As it was answered the last time: see {@link refresh} and {@link waitUntil}. A later version
   * may have further ones.
   */
  get status(): SandboxData['status'] {
    return this.#data.status;
  }

  /** Asks the service how it is now. */
  async refresh(options: CallOptions = {}): Promise<this> {
    const { sandbox } = await this.#calls.raw.getSandbox({
      path: { sandboxId: this.id },
      ...this.#calls.with(options),
    });
    return this.#take(sandbox);
  }

  /**
   * Runs a command with /bin/sh in /code and gives its result, whatever the exit code: `(await
   * sandbox.exec('make')).ok`. To have another exit code than 0 thrown: `await
   * sandbox.exec('make').orThrow()`.
   */
  exec(command: string, { timeoutSeconds, ...options }: ExecOptions = {}): RunningCommand {
    return runningCommand(this.#exec(command, timeoutSeconds, options));
  }

  async #exec(command: string, timeoutSeconds: number | undefined, options: CallOptions): Promise<CommandResult> {
    const { raw, with: set } = this.#calls;
    const seconds = timeoutSeconds ?? EXEC_LIMITS.timeoutSeconds.default;
    const notes = {
      timeoutMs: seconds * 1_000 + BEYOND_COMMAND_MS,
      ...options,
      whenLost: 'The command may have run, in whole or in part.',
    };
    const body = timeoutSeconds === undefined ? { command } : { command, timeoutSeconds };
    return new CommandResult(command, await raw.execInSandbox({ path: { sandboxId: this.id }, body, ...set(notes) }));
  }

  /** What it uses at this moment. */
  async metrics(options: CallOptions = {}): Promise<LiveMetrics> {
    const { raw, with: set } = this.#calls;
    return (await raw.getLiveMetrics({ path: { sandboxId: this.id }, ...set(options) })).metrics;
  }

  /** Notes a sample of what it uses, and gives the size that is recommended. */
  async sampleMetrics(options: CallOptions = {}): Promise<MetricsSample> {
    const { raw, with: set } = this.#calls;
    return (await raw.sampleMetrics({ path: { sandboxId: this.id }, ...set(options) })).sample;
  }

  /** Captures memory and disk and releases the machine; an ephemeral one ends. */
  async sleep(options: TransitionOptions = {}): Promise<this> {
    const { raw } = this.#calls;
    return await this.#transition(['stopped', 'deleted'], options, (call) => raw.sleepSandbox(call));
  }

  /** Restores it with its processes. */
  async wake(options: TransitionOptions = {}): Promise<this> {
    const { raw } = this.#calls;
    return await this.#transition(AWAKE, options, (call) => raw.wakeSandbox(call));
  }

  /**
   * Sets its size: at once where that is possible, otherwise as `data.pendingAllocation`, for the
   * next wake.
   */
  async resize(size: Size, options: CallOptions = {}): Promise<this> {
    const { raw, with: set } = this.#calls;
    return this.#take((await raw.resizeSandbox({ path: { sandboxId: this.id }, body: size, ...set(options) })).sandbox);
  }

  /** Extends the expiry of an ephemeral one by its time to live. */
  async renew(options: CallOptions = {}): Promise<this> {
    const { raw, with: set } = this.#calls;
    return this.#take((await raw.renewSandbox({ path: { sandboxId: this.id }, ...set(options) })).sandbox);
  }

  /** Deletes machine, disk and snapshot for good. Doing it again changes nothing. */
  async destroy(options: TransitionOptions = {}): Promise<this> {
    const { raw } = this.#calls;
    return await this.#transition(['deleted'], options, (call) => raw.destroySandbox(call));
  }

  /**
   * Waits until it has a status (`running` is also reached with `ready`), asking after 100 ms and
   * then ever less often, at most every 2 s. Rejects with `unexpected_status` when it came to rest
   * in another status than was waited for, with the service's reason in the message.
   */
  async waitUntil(wanted: Awaited, { signal, timeoutMs = TRANSITION_TIMEOUT_MS }: CallOptions = {}): Promise<this> {
    const startedMs = Date.now();
    await this.refresh({ signal, timeoutMs });
    return await this.settle(wanted, startedMs, { signal, timeoutMs }, false);
  }

  /**
   * As {@link waitUntil}, from what was answered a moment ago.
   *
   * @param startedMs since when the time counts
   * @param begun whether that was the answer to the call that began the transition: what has come
   * to rest otherwise by then will not come to it
   * @internal
   */
  async settle(
    wanted: Awaited,
    startedMs: number,
    { signal, timeoutMs = TRANSITION_TIMEOUT_MS }: CallOptions,
    begun: boolean,
  ): Promise<this> {
    const isThere = lookFor(wanted);
    const left = Math.max(1, timeoutMs - (Date.now() - startedMs));
    const deadline = new Deadline(
      left,
      `waiting for sandbox ${this.id} to be ${shown(wanted)}, which was ${this.status},`,
      [signal],
    );
    try {
      let wasMoving = begun;
      for (let pause = FIRST_LOOK_MS; !isThere(this.#data); pause = Math.min(LONGEST_PAUSE_MS, pause * SLOWER_BY)) {
        if (isOver(this.status) || (wasMoving && isSettled(this.status))) throw this.#unexpected(wanted);
        wasMoving ||= !isSettled(this.status);
        await delay(pause, deadline.signal);
        await this.refresh({ signal: deadline.signal });
      }
      return this;
    } finally {
      deadline.end();
    }
  }

  /** For `await using`: destroys it, without waiting for the end of that. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy({ wait: false });
  }

  #unexpected(wanted: Awaited): BerthError {
    const { statusReason, status } = this.#data;
    const why = statusReason === null ? '' : `: ${statusReason.message} (${statusReason.code})`;
    return new BerthError(`sandbox ${this.id} is ${status}, not ${shown(wanted)}${why}`, {
      code: 'unexpected_status',
    });
  }

  async #transition(
    wanted: readonly SandboxStatus[],
    { wait = true, signal, timeoutMs = TRANSITION_TIMEOUT_MS }: TransitionOptions,
    call: (options: {
      path: { sandboxId: string };
      fetch: typeof globalThis.fetch;
      headers?: { Prefer: string };
    }) => Promise<{ sandbox: SandboxData }>,
  ): Promise<this> {
    const startedMs = Date.now();
    const headers = wait ? {} : { headers: { Prefer: 'respond-async' } };
    const { sandbox } = await call({
      path: { sandboxId: this.id },
      ...headers,
      ...this.#calls.with({ signal, ...(wait ? {} : { timeoutMs }) }),
    });
    this.#take(sandbox);
    return wait ? await this.settle(wanted, startedMs, { signal, timeoutMs }, true) : this;
  }

  #take(data: SandboxData): this {
    this.#data = data;
    return this;
  }
}

function lookFor(wanted: Awaited): (sandbox: SandboxData) => boolean {
  if (typeof wanted === 'function') return wanted;
  const statuses = new Set<string>(typeof wanted === 'string' ? [wanted] : wanted);
  // What comes after `running`, and has all of it.
  if (statuses.has('running')) statuses.add('ready');
  return ({ status }) => statuses.has(status);
}

function shown(wanted: Awaited): string {
  if (typeof wanted === 'function') return 'in the requested state';
  return typeof wanted === 'string' ? wanted : wanted.join(' or ');
}

/** Whether nothing is under way. Of a status that is not known nothing is said. */
function isSettled(status: string): boolean {
  return (SANDBOX_STATES as Readonly<Record<string, { settled: boolean } | undefined>>)[status]?.settled === true;
}

/** Whether nothing follows by itself. */
function isOver(status: string): boolean {
  return status === 'failed' || status === 'deleted';
}
