// An agent session in the guest daemon: its files, and its live bridge if any. Starts, recovers and
// stops the bridge one at a time, and settles the files after the bridge's death.
import { isSame } from '@berth/os/process-identity.ts';
import { SerialQueue } from '@berth/os/serial-queue.ts';
import { messageOf } from '@berth/os/errors.ts';
import type { GuestAgentView, GuestPromptText, GuestTurn } from '@berth/protocol/agents.ts';
import { AGENT_READY_MS } from '@berth/protocol/agent-errors.ts';
import type { AgentStarted } from '@berth/protocol/calls/agents.ts';
import type { BridgeConfig } from '../bridge/config.ts';
import { isOver, SessionFiles, SessionReader, settle, turnOf, type SessionState } from '../bridge/files.ts';
import type { BridgeOperation, BridgeOperations } from '../bridge/lines.ts';
import { killIfAlive, killSince, type ProcessScope } from '../bridge/processes.ts';
import { AgentRefused } from '../bridge/refusal.ts';
import { SessionFlush } from './flush.ts';
import { LiveBridge, refusalIn, type BridgeRefusal } from './live-bridge.ts';
import type { SessionPaths } from './paths.ts';

/** Pause after a failed write. */
const SETTLE_AGAIN_MS = 1_000;

/** A start of a bridge, as decided by the caller. */
export interface BridgeStart {
  program: string;
  sha256: string;
  config: BridgeConfig;
  approvals: 'ask' | 'never';
  runId: string;
  env: readonly string[];
}
export type GivenStart = Pick<BridgeStart, 'program' | 'env'>;

export class AgentSession {
  readonly id: string;
  readonly reader: SessionReader;
  readonly flush: SessionFlush;
  readonly #paths: SessionPaths;
  readonly #runId: string;
  readonly #queue = new SerialQueue();
  #bridge: LiveBridge | null = null;
  #view: GuestAgentView | null = null;
  #refusal: BridgeRefusal | undefined;
  /** Resolved and replaced at each change. */
  #change = Promise.withResolvers<void>();
  #starting: Promise<AgentStarted> | null = null;
  #lastUsedMs = performance.now();
  /** Counts as live, until the start in progress has a bridge or has failed. */
  holdsRoom = false;

  constructor(id: string, paths: SessionPaths, runId: string) {
    this.id = id;
    this.#paths = paths;
    this.#runId = runId;
    this.reader = new SessionReader(paths.folder);
    this.flush = new SessionFlush(this.reader);
  }

  get isLive(): boolean {
    return this.#bridge !== null || this.holdsRoom;
  }

  /** A live bridge that can be stopped without an effect on a turn, or on a person's terminal. */
  get isIdle(): boolean {
    const view = this.#bridge === null ? null : this.#view;
    if (view?.bridge !== 'ready' || view.surface === 'terminal') return false;
    return view.turn === null || isOver(view.turn);
  }

  get lastUsedMs(): number {
    return this.#lastUsedMs;
  }

  view(): GuestAgentView | null {
    return this.#bridge === null ? (this.reader.state()?.view ?? null) : this.#view;
  }

  /** Finds the bridge of an earlier daemon, or settles the files after its death. */
  async recover(): Promise<void> {
    const state = this.reader.state();
    if (state === null) return;
    if (state.view.runId === this.#runId && state.view.bridge !== 'stopped') {
      this.#view = state.view;
      this.#bridge = await LiveBridge.find(this.#paths.socket, this.#events());
    }
    if (this.#bridge === null) await this.#settleInTime();
  }

  /** Joins a start in progress. `prepare` throws {@link AgentRefused}. */
  start(prepare: () => Promise<BridgeStart>): Promise<AgentStarted> {
    this.#starting ??= this.#queue
      .run(() => this.#start(prepare))
      .finally(() => {
        this.#starting = null;
      });
    return this.#starting;
  }

  /** Calls the live bridge; null without one, or if it died: the files are settled then. */
  async call<O extends BridgeOperation>(
    operation: O,
    request: BridgeOperations[O]['request'],
  ): Promise<BridgeOperations[O]['response'] | null> {
    const bridge = this.#bridge;
    if (bridge === null) return null;

    if (operation !== 'prompt' && operation !== 'turn') this.#lastUsedMs = performance.now();
    try {
      return await bridge.call(operation, request);
    } catch (error) {
      if (!(error instanceof AgentRefused && error.code === 'agent_bridge_stopped')) throw error;

      while (this.#bridge === bridge) await this.changed();

      return null;
    }
  }

  /** A turn from the files. */
  turn(turnId: string): GuestTurn | null {
    const known = this.reader.history().turns.get(turnId);
    return known === undefined ? null : turnOf(known);
  }

  /** Records a void while no bridge is live; null if one is. */
  async void(turnId: string): Promise<GuestTurn | null> {
    return this.#queue.run(async () => {
      if (this.#bridge !== null) return null;

      if (this.turn(turnId) === null) {
        const files = new SessionFiles(this.#paths.folder);
        files.addTurn({ turnId, state: 'void', reason: null, atUnixMs: Date.now(), number: 0 });
        files.close();
      }
      return this.turn(turnId);
    });
  }

  async promptText(isFull: boolean): Promise<GuestPromptText | null> {
    if (this.view()?.prompt == null) return null;

    return (await this.call('prompt', { isFull }))?.prompt ?? null;
  }

  /** Stops an idle bridge; resolves when it is gone. */
  async stop(reason: 'idle' | 'memory'): Promise<void> {
    const bridge = this.#bridge;
    await this.call('stop', { reason });
    while (this.#bridge !== null && this.#bridge === bridge) await this.changed();
  }

  /** Resolves at the next change of the view. */
  changed(): Promise<void> {
    return this.#change.promise;
  }

  detach(): void {
    this.#bridge?.detach();
  }

  async #start(prepare: () => Promise<BridgeStart>): Promise<AgentStarted> {
    // A stopped bridge exits within a second.
    while (this.#bridge !== null && this.#view?.bridge === 'stopped') await this.changed();

    if (this.#bridge === null) {
      try {
        await this.#begin(await prepare());
      } catch (error) {
        if (!(error instanceof AgentRefused)) throw error;
        return { outcome: 'refused', code: error.code, message: error.message, session: this.view() };
      } finally {
        this.holdsRoom = false;
      }
    }
    const late = AbortSignal.timeout(AGENT_READY_MS);
    const expired = Promise.withResolvers<void>();
    late.addEventListener('abort', () => expired.resolve(), { once: true });
    while (this.#bridge !== null && this.#view?.bridge !== 'ready' && !late.aborted)
      await Promise.race([this.changed(), expired.promise]);

    const session = this.view();
    if (this.#bridge !== null && session?.bridge === 'ready') {
      await this.flush.session();
      return { outcome: 'ready', session };
    }

    if (late.aborted) {
      await this.#bridge?.kill();
      while (this.#bridge !== null) await this.changed();
      this.#markNotReady();
    }
    return { outcome: 'refused', ...(this.#refusal ?? refusalIn(this.view())), session: this.view() };
  }

  async #begin({ program, sha256, config, approvals, runId, env }: BridgeStart): Promise<void> {
    const owners = this.reader.owners();
    for (const owner of [owners?.bridge, owners?.agent, ...(owners?.others ?? [])]) {
      if (owner != null && (await isSame(owner)))
        throw new AgentRefused('agent_process_alive', `process ${owner.pid} of an earlier bridge is alive`);
    }
    if (this.reader.state() !== null) await this.#settle();
    const files = new SessionFiles(this.#paths.folder);
    const before = files.state();
    const state: SessionState = {
      savedId: null,
      nextRequest: 1,
      nextSeq: files.lastSeq() + 1,
      nextNumber: files.lastNumber() + 1,
      ...before,
      bridgeSha256: sha256,
      approvals,
      view: {
        sessionId: this.id,
        agent: config.agent,
        surface: config.surface ?? 'managed',
        bridgeVersion: null,
        turn: null,
        prompt: null,
        lastSeq: files.lastSeq(),
        signs: 0,
        ...before?.view,
        runId,
        bridge: 'starting',
        bridgeReason: null,
        revision: (before?.view.revision ?? 0) + 1,
      },
    };
    files.writeState(state);
    files.close();
    this.#refusal = undefined;
    this.#view = state.view;
    this.#lastUsedMs = performance.now();
    try {
      this.#bridge = await LiveBridge.spawn(program, { config, env }, this.#events());
    } finally {
      if (this.#bridge === null) await this.#settleInTime();
    }
  }

  #events(): Parameters<typeof LiveBridge.find>[1] {
    return {
      pingMs: this.#paths.pingMs,
      view: (view: GuestAgentView, refusal: BridgeRefusal | undefined) => {
        this.#view = view;
        this.#refusal = refusal;
        this.#notify();
      },
      ended: () => {
        void this.#settleInTime().finally(() => {
          this.#bridge = null;
          this.#notify();
        });
      },
    };
  }

  /** Settles the files; repeats it until they can be written. */
  async #settleInTime(): Promise<void> {
    try {
      await this.#settle();
    } catch (error) {
      console.error(`the files of ${this.id} are not settled: ${messageOf(error)}`);
      const again = async (): Promise<void> => {
        if (this.#bridge === null) await this.#settleInTime();
        this.#notify();
      };
      setTimeout(() => void this.#queue.run(again), SETTLE_AGAIN_MS).unref();
    }
  }

  /** Kills what the turn of the dead bridge began, then records its failure. */
  async #settle(): Promise<void> {
    const scope: ProcessScope = { sessionId: this.id, cgroup: this.#paths.cgroup };
    const unfinished = [...this.reader.history().turns.values()].filter((turn) => !isOver(turn));
    const view = this.reader.state()?.view;
    if (view?.runId === this.#runId && view.bridge !== 'stopped') {
      await killIfAlive(this.reader.owners()?.agent ?? null);
      // The tmux of a terminal does not exit with its bridge, and may be on no record yet.
      const since = view.surface === 'terminal' ? [0] : unfinished.map(({ ticks }) => ticks);
      for (const ticks of since) await killSince(scope, ticks, null);
    }
    const files = new SessionFiles(this.#paths.folder);
    try {
      settle(files, this.#runId);
    } finally {
      files.close();
    }
  }

  #markNotReady(): void {
    const files = new SessionFiles(this.#paths.folder);
    const state = files.state();
    if (state !== null) files.writeState({ ...state, view: { ...state.view, bridgeReason: 'not_ready' } });

    files.close();
  }

  #notify(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }
}
