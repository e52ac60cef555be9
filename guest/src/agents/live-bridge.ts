// Connection of the guest daemon to a live bridge: starts or finds the process, sends operations,
// receives views, and ends a bridge that does not respond.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isSame, killProcess, processExited, readProcess, type ProcessIdentity } from '@berth/os/process-identity.ts';
import { messageOf, nullOn } from '@berth/os/errors.ts';
import { makeFolders } from '../machine/make-folder.ts';
import { GUEST_NODE_FLAGS } from '../machine/node-flags.ts';
import type { GuestAgentView } from '@berth/protocol/agents.ts';
import type { BridgeConfig } from '../bridge/config.ts';
import { parseLine } from '../bridge/journal.ts';
import {
  receiveLines,
  sendLine,
  type BridgeLine,
  type BridgeOperation,
  type BridgeOperations,
} from '../bridge/lines.ts';
import { AgentRefused, bridgeStopped } from '../bridge/refusal.ts';

/** Saves V8's threads, as a flag of Node's. */
const NO_THREADS = '--v8-pool-size=0';
const CALL_MS = 8_000;
/** Unanswered pings that end a bridge. Counted: time also passes while the processes are paused. */
const PINGS = 6;
const CONNECT_STEP_MS = 10;

export type BridgeRefusal = { code: AgentRefused['code']; message: string };

interface BridgeEvents {
  view(view: GuestAgentView, refusal: BridgeRefusal | undefined): void;
  /** The process is gone. */
  ended(): void;
  /** Interval of the pings. */
  pingMs: number;
}

interface Call {
  resolve(response: object): void;
  reject(error: Error): void;
}

export class LiveBridge {
  readonly process: ProcessIdentity;
  readonly #socketPath: string;
  readonly #events: BridgeEvents;
  readonly #calls = new Map<number, Call>();
  readonly #connected = Promise.withResolvers<void>();
  #socket: Socket | null = null;
  #lastId = 0;
  #missed = 0;
  #timer: NodeJS.Timeout;

  /** Starts a bridge. Its process outlives this daemon. */
  static async spawn(
    program: string,
    { config, env }: { config: BridgeConfig; env: readonly string[] },
    events: BridgeEvents,
  ): Promise<LiveBridge> {
    makeFolders(0o700, dirname(config.socket));
    const log = openSync(join(config.folder, 'bridge.log'), 'w', 0o600);
    let child;
    // With a flag of V8's, V8 rejects Node's own code cache and compiles Node's modules: 250 of the
    // 700 ms of a bridge's start on an emulated CPU.
    const flags = globalThis.process.execArgv.filter((flag) => !GUEST_NODE_FLAGS.includes(flag));
    try {
      child = spawn(globalThis.process.execPath, [NO_THREADS, ...flags, program, JSON.stringify(config)], {
        cwd: '/',
        env: { PATH: globalThis.process.env['PATH'], LC_ALL: 'C' },
        stdio: ['pipe', log, log],
        detached: true,
      });
      await once(child, 'spawn');
    } finally {
      closeSync(log);
    }
    child.unref();
    const found = await readProcess(child.pid ?? 0);
    const process = found ?? { pid: child.pid ?? 0, startTicks: '', bootId: '' };
    child.stdin?.on('error', () => undefined);
    try {
      writeFileSync(`${config.socket}.json.new`, JSON.stringify(process), { mode: 0o600 });
      renameSync(`${config.socket}.json.new`, `${config.socket}.json`);
      // The bridge starts once its process is on record: no daemon could find it otherwise.
      // Variables may be secret: no argument, which every user can read.
      child.stdin?.write(`go\n${JSON.stringify(env)}`);
    } finally {
      child.stdin?.end();
    }
    return new LiveBridge(process, config.socket, events);
  }

  /** Finds the bridge that an earlier daemon started; null if it is gone. */
  static async find(socket: string, events: BridgeEvents): Promise<LiveBridge | null> {
    const text = nullOn(['ENOENT'], () => readFileSync(`${socket}.json`));
    const process = (text === null ? null : parseLine(text)) as ProcessIdentity | null;
    if (process === null || !(await isSame(process))) return null;

    return new LiveBridge(process, socket, events);
  }

  private constructor(process: ProcessIdentity, socket: string, events: BridgeEvents) {
    this.process = process;
    this.#socketPath = socket;
    this.#events = events;
    this.#connected.promise.catch(() => undefined);
    this.#timer = setInterval(() => void this.#ping(), events.pingMs);
    void this.#follow();
  }

  async call<O extends BridgeOperation>(
    operation: O,
    request: BridgeOperations[O]['request'],
  ): Promise<BridgeOperations[O]['response']> {
    await this.#connected.promise;
    this.#lastId += 1;
    const id = this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<object>();
    const late = setTimeout(() => reject(new Error(`the bridge did not respond within ${CALL_MS} ms`)), CALL_MS);
    this.#calls.set(id, { resolve, reject });
    if (this.#socket === null) reject(bridgeStopped());
    else sendLine(this.#socket, { id, operation, request });

    try {
      return await promise;
    } finally {
      clearTimeout(late);
      this.#calls.delete(id);
    }
  }

  async kill(): Promise<void> {
    await killProcess(this.process, 'SIGKILL');
  }

  /** Stops following; the bridge goes on. */
  detach(): void {
    clearInterval(this.#timer);
    this.#socket?.destroy();
  }

  async #follow(): Promise<void> {
    while (await isSame(this.process)) {
      const socket = await opened(this.#socketPath);
      if (socket === null) {
        await delay(CONNECT_STEP_MS);
        continue;
      }
      this.#socket = socket;
      receiveLines(socket, (line) => this.#take(line as BridgeLine));
      this.#connected.resolve();
      await new Promise((resolve) => socket.once('close', resolve));
      this.#socket = null;
      this.#fail();
      await processExited(this.process, AbortSignal.timeout(1_000));
    }
    clearInterval(this.#timer);
    this.#connected.reject(bridgeStopped());
    this.#fail();
    rmSync(`${this.#socketPath}.json`, { force: true });
    this.#events.ended();
  }

  #fail(): void {
    for (const call of this.#calls.values()) call.reject(bridgeStopped());
  }

  #take(line: BridgeLine): void {
    this.#missed = 0;
    if ('view' in line) this.#events.view(line.view, 'refusal' in line ? line.refusal : undefined);
    if (!('id' in line)) return;

    const call = this.#calls.get(line.id);
    if ('response' in line) {
      call?.resolve(line.response);
    } else {
      const { code, message } = line.error;
      call?.reject(code === null ? new Error(message) : new AgentRefused(code, message));
    }
  }

  async #ping(): Promise<void> {
    this.#missed += 1;
    if (this.#missed >= PINGS) {
      console.error(`the bridge ${this.process.pid} does not respond, and is ended`);
      await this.kill();
    } else if (this.#socket !== null) {
      await this.call('ping', {}).catch((error: unknown) => console.error(`a ping failed: ${messageOf(error)}`));
    }
  }
}

/** The refusal on record, of a bridge that exited before its connection was open. */
export function refusalIn(view: GuestAgentView | null): BridgeRefusal {
  switch (view?.bridgeReason) {
    case 'not_signed_in':
      return { code: 'agent_not_signed_in', message: 'the agent is not signed in' };
    case 'conversation_missing':
      return { code: 'agent_conversation_missing', message: 'the saved conversation is missing' };
    default:
      return { code: 'agent_not_ready', message: 'the agent was not ready in time' };
  }
}

async function opened(path: string): Promise<Socket | null> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return socket;
  } catch {
    socket.destroy();
    return null;
  }
}
