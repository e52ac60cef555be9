// Follows the output of a process over WebSockets, as far as they can be opened.
import type { Calls } from '../calls/calls.ts';
import { WEBSOCKET_PATHS } from '../generated/contract-tables.ts';
import type { Connection } from '../streams/connection.ts';
import { BerthError } from '../transport/errors.ts';
import type { ProcessOutput } from './output.ts';

interface Opened {
  connection: Connection;
  output: ReadableStream<ProcessOutput>;
}

const OPEN_TIMEOUT_MS = 15_000;
/** No other attempt is made for this time after one that failed. */
const REFUSED_MS = 60_000;

export class Follower {
  readonly #calls: Calls;
  readonly #path: { sandboxId: string; processId: string };
  #notBeforeMs = 0;
  /** Ends a connection. */
  signal = new AbortController().signal;

  constructor(calls: Calls, path: { sandboxId: string; processId: string }) {
    this.#calls = calls;
    this.#path = path;
  }

  /** Output behind the cursor, until it is complete, or the connection ends for another reason. */
  async *outputFrom(since: string): AsyncGenerator<ProcessOutput, void, undefined> {
    const opened = await this.#open(since);
    if (opened === undefined) return;
    const reader = opened.output.getReader();
    try {
      for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
    } catch (error) {
      this.signal.throwIfAborted();
      if (!(error instanceof BerthError)) throw error;
    } finally {
      opened.connection.close();
    }
  }

  async #open(since: string): Promise<Opened | undefined> {
    if (Date.now() < this.#notBeforeMs) return undefined;
    const { sandboxId, processId } = this.#path;
    const [{ openConnection }, { followedOutput }] = await Promise.all([
      import('../streams/open.ts'),
      import('./followed-output.ts'),
    ]);
    const path = WEBSOCKET_PATHS.process.replace('{sandboxId}', sandboxId).replace('{processId}', processId);
    const target = { what: `the output of process ${processId}`, path, query: { since } };
    const limits = { signal: this.signal, timeoutMs: OPEN_TIMEOUT_MS };
    try {
      const make = (connection: Connection): Opened => ({ connection, output: followedOutput(connection) });
      return await openConnection(this.#calls.endpoint, target, limits, make);
    } catch {
      this.signal.throwIfAborted();
      // Requests do the same, and tell why if they cannot.
      this.#notBeforeMs = Date.now() + REFUSED_MS;
      return undefined;
    }
  }
}
