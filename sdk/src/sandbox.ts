// A sandbox: its record and operations.
import type { Calls } from './calls/calls.ts';
import { CommandResult, runningCommand, type ExecOptions, type RunningCommand } from './processes/command.ts';
import { SandboxAgents } from './agents.ts';
import { SandboxFiles } from './files.ts';
import { SandboxPreviews, type PreviewUrlOptions } from './previews.ts';
import type { SandboxProcess } from './processes/process.ts';
import { SandboxProcesses, type SpawnOptions } from './processes/processes.ts';
import { EXEC_LIMITS } from './generated/limits.ts';
import type {
  EgressRequest as SandboxEgress,
  LiveMetrics,
  MetricsHistory,
  MetricsSample,
  SandboxDiagnostics,
  UpdateSandboxData,
} from './generated/raw/index.ts';
import type { Sandbox as SandboxData, SandboxStatus } from './generated/raw/index.ts';
import { SandboxVariables } from './variables.ts';
import { SandboxStreams } from './sandbox-streams.ts';
import type { CallOptions } from './transport/transport.ts';
import { settle } from './calls/settle.ts';
import type { Awaited } from './calls/wanted-status.ts';

export type { Awaited, LiveMetrics, MetricsHistory, MetricsSample, SandboxData, SandboxEgress, SandboxStatus };
export type { SandboxDiagnostics };

/** Options of calls that start a transition. */
export interface TransitionOptions extends CallOptions {
  /** Wait for the end of the transition; by default true. */
  wait?: boolean;
}

/** Sizes for {@link Sandbox.resize}; omitted ones stay, at least one is required. */
export interface Size {
  vcpu?: number;
  memoryGb?: number;
  /** A disk can only grow. */
  diskGb?: number;
}

/** Default timeout of a transition. */
export const TRANSITION_TIMEOUT_MS = 180_000;
/** Added to the command's timeout, for a wake and the network. */
const BEYOND_COMMAND_MS = 90_000;
const AWAKE = ['running', 'ready'] as const;

export class Sandbox extends SandboxStreams {
  readonly files: SandboxFiles;
  /** Preview links to its ports. */
  readonly previews: SandboxPreviews;
  /** Conversations with its coding agent. */
  readonly agents: SandboxAgents;
  /** Environment variables of its programs. */
  readonly variables: SandboxVariables;
  /** Programs that outlive the request that started them. */
  readonly processes: SandboxProcesses;
  readonly #calls: Calls;
  #data: SandboxData;

  /** Constructed by the SDK. */
  constructor(calls: Calls, data: SandboxData) {
    super(calls, data.id);
    this.#calls = calls;
    this.#data = data;
    this.files = new SandboxFiles(calls, data.id);
    this.previews = new SandboxPreviews(calls, data.id);
    this.variables = new SandboxVariables(calls, data.id);
    this.agents = new SandboxAgents(calls, data.id);
    this.processes = new SandboxProcesses(calls, data.id);
  }

  /** Record of the last response. */
  get data(): SandboxData {
    return this.#data;
  }

  get name(): string {
    return this.#data.name;
  }

  /** Status of the last response: see {@link refresh}. Later versions may add values. */
  get status(): SandboxData['status'] {
    return this.#data.status;
  }

  /** Requests the current record. */
  async refresh(options: CallOptions = {}): Promise<this> {
    const { raw, with: set } = this.#calls;
    return this.#take((await raw.getSandbox({ path: { sandboxId: this.id }, ...set(options) })).sandbox);
  }

  /**
   * Runs a command with /bin/sh and resolves with its result, for any exit code: `(await
   * sandbox.exec('make')).ok`. To throw for another code than 0: `await
   * sandbox.exec('make').orThrow()`.
   */
  exec(command: string, options: ExecOptions = {}): RunningCommand {
    return runningCommand(this.#exec(command, options));
  }

  /** URL that opens a port in a browser: {@link SandboxPreviews.url}. */
  async url(port: number, options: PreviewUrlOptions = {}): Promise<string> {
    return await this.previews.url(port, options);
  }

  /** Starts a process: {@link SandboxProcesses.start}. */
  async spawn(command: string | readonly string[], options: SpawnOptions = {}): Promise<SandboxProcess> {
    return await this.processes.start(command, options);
  }

  async #exec(command: string, options: ExecOptions): Promise<CommandResult> {
    const { onStdout, onStderr, signal, timeoutMs: given, ...rest } = options;
    const seconds = rest.timeoutSeconds ?? EXEC_LIMITS.timeoutSeconds.default;
    const timeoutMs = given ?? seconds * 1_000 + BEYOND_COMMAND_MS;
    if (onStdout !== undefined || onStderr !== undefined) {
      const { streamCommand } = await import('./processes/streamed-command.ts');
      return await streamCommand(this.processes, command, { ...options, timeoutMs });
    }
    const { raw, with: set } = this.#calls;
    const notes = { timeoutMs, signal, whenLost: 'The command may have run, in whole or in part.' };
    const body = { command, ...rest };
    return new CommandResult(command, await raw.execInSandbox({ path: { sandboxId: this.id }, body, ...set(notes) }));
  }

  /** Returns the current resource usage. */
  async metrics(options: CallOptions = {}): Promise<LiveMetrics> {
    const { raw, with: set } = this.#calls;
    return (await raw.getLiveMetrics({ path: { sandboxId: this.id }, ...set(options) })).metrics;
  }

  /**
   * Returns the usage in the last `windowSeconds`, by default an hour, at most a day. Also of a
   * sandbox that sleeps; wakes nothing.
   */
  async metricsHistory(options: CallOptions & { windowSeconds?: number } = {}): Promise<MetricsHistory> {
    const { raw, with: set } = this.#calls;
    const query = { windowSeconds: options.windowSeconds ?? 3_600 };
    return (await raw.getMetricsHistory({ path: { sandboxId: this.id }, query, ...set(options) })).history;
  }

  /**
   * Returns why the sandbox is as it is: its failure, last start, clone, console and last events.
   * In any status; wakes nothing.
   */
  async diagnostics(options: CallOptions = {}): Promise<SandboxDiagnostics> {
    const { raw, with: set } = this.#calls;
    return (await raw.getDiagnostics({ path: { sandboxId: this.id }, ...set(options) })).diagnostics;
  }

  /** Stores a usage sample and returns the recommended size. */
  async sampleMetrics(options: CallOptions = {}): Promise<MetricsSample> {
    const { raw, with: set } = this.#calls;
    return (await raw.sampleMetrics({ path: { sandboxId: this.id }, ...set(options) })).sample;
  }

  /** Saves memory and disk and stops the VM. Destroys an ephemeral sandbox. */
  async sleep(options: TransitionOptions = {}): Promise<this> {
    const { raw } = this.#calls;
    return await this.#transition(['stopped', 'deleted'], options, (call) => raw.sleepSandbox(call));
  }

  /** Restores the VM with its processes. */
  async wake(options: TransitionOptions = {}): Promise<this> {
    const { raw } = this.#calls;
    return await this.#transition(AWAKE, options, (call) => raw.wakeSandbox(call));
  }

  /**
   * Changes the size, at once if possible; otherwise at the next wake, as `data.pendingAllocation`.
   */
  async resize(size: Size, options: TransitionOptions = {}): Promise<this> {
    const { raw } = this.#calls;
    return await this.#transition(
      ({ resizing }) => !resizing,
      options,
      (call) => raw.resizeSandbox({ ...call, body: size }),
    );
  }

  /** Replaces the egress policy; false: in force at the next wake, or when its host responds. */
  async setEgress(egress: SandboxEgress, options: CallOptions = {}): Promise<boolean> {
    const { raw, with: set } = this.#calls;
    const answer = await raw.setEgress({ path: { sandboxId: this.id }, body: egress, ...set(options) });
    this.#take(answer.sandbox);
    return answer.enforced;
  }

  /** Changes name, labels (replaced as a whole) or idle time; wakes nothing. */
  async update(changes: UpdateSandboxData['body'], options: CallOptions = {}): Promise<this> {
    const { raw, with: set } = this.#calls;
    const call = { path: { sandboxId: this.id }, body: changes, ...set(options) };
    return this.#take((await raw.updateSandbox(call)).sandbox);
  }

  /** Extends the expiry of an ephemeral sandbox by its time to live. */
  async renew(options: CallOptions = {}): Promise<this> {
    const { raw, with: set } = this.#calls;
    return this.#take((await raw.renewSandbox({ path: { sandboxId: this.id }, ...set(options) })).sandbox);
  }

  /** Deletes VM, disk and snapshot permanently. Idempotent. */
  async destroy(options: TransitionOptions = {}): Promise<this> {
    const { raw } = this.#calls;
    return await this.#transition(['deleted'], options, (call) => raw.destroySandbox(call));
  }

  /**
   * Polls until the sandbox has a status (`ready` also satisfies `running`): after 100 ms, then
   * less often, at most every 2 s. Rejects with `unexpected_status` and the service's reason if it
   * settled in another status.
   */
  async waitUntil(wanted: Awaited, { signal, timeoutMs = TRANSITION_TIMEOUT_MS }: CallOptions = {}): Promise<this> {
    const startedMs = Date.now();
    await this.refresh({ signal, timeoutMs });
    return await settle(this, wanted, { startedMs, signal, timeoutMs }, false);
  }

  /** For `await using`: destroys the sandbox without waiting. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy({ wait: false });
  }

  async #transition(
    wanted: Awaited,
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
    const begun = typeof wanted !== 'function';
    return wait ? await settle(this, wanted, { startedMs, signal, timeoutMs }, begun) : this;
  }

  #take(data: SandboxData): this {
    this.#data = data;
    return this;
  }
}
