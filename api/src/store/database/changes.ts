// Notifies waiters of changes by any replica to sandboxes, and to the activity of orgs, over one
// LISTEN connection per process. Notices carry no state: a waiter reads the rows again. A broken
// connection wakes every waiter.
import { Client } from 'pg';

/** Postgres channel; the payload is the id of the sandbox or org. */
export const CHANGES_CHANNEL = 'berth_changes';

const RECONNECT_MS = 500;
/**
 * Longest sleep of a waiter before it reads again: a notice can be lost with a connection.
 */
const RECHECK_MS = 1_000;

export interface ChangeWatch {
  /**
   * Resolves at the next change since the last call (at once if there was one), after
   * `recheckMs`, or when the signal aborts. The value is true if there may have been a change.
   */
  next(signal: AbortSignal, recheckMs?: number): Promise<boolean>;
  close(): void;
}

export class Changes {
  readonly #url: string;
  readonly #onError: (error: Error) => void;
  readonly #waiters = new Map<string, Set<() => void>>();
  #client: Client | undefined;
  #reconnect: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(url: string, onError: (error: Error) => void) {
    this.#url = url;
    this.#onError = onError;
  }

  /** Resolves once listening. Reconnects in the background. */
  async start(): Promise<void> {
    const client = new Client({
      connectionString: this.#url,
      application_name: 'berth-api-listen',
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
    });
    client.on('notification', (notice) => {
      if (notice.payload !== undefined) this.#wake(notice.payload);
    });
    client.on('error', (error) => this.#lost(client, error));
    client.on('end', () => this.#lost(client, new Error('the Postgres LISTEN connection was closed')));
    this.#client = client;
    await client.connect();
    await client.query(`listen ${CHANGES_CHANNEL}`);
  }

  /** Starts to record changes of a sandbox or org. Watch first, then read, to miss no change. */
  watch(id: string): ChangeWatch {
    let changed = false;
    let resolveNext: (() => void) | undefined;
    const wake = (): void => {
      changed = true;
      resolveNext?.();
    };
    const waiters = this.#waiters.get(id) ?? new Set();
    waiters.add(wake);
    this.#waiters.set(id, waiters);
    return {
      next: async (signal, recheckMs = RECHECK_MS) => {
        if (!changed && !signal.aborted) {
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, recheckMs);
            const done = (): void => {
              clearTimeout(timer);
              signal.removeEventListener('abort', done);
              resolve();
            };
            resolveNext = done;
            signal.addEventListener('abort', done, { once: true });
          });
          resolveNext = undefined;
        }
        const noted = changed;
        changed = false;
        return noted;
      },
      close: () => {
        waiters.delete(wake);
        if (waiters.size === 0 && this.#waiters.get(id) === waiters) this.#waiters.delete(id);
      },
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#reconnect);
    const client = this.#client;
    this.#client = undefined;
    await client?.end();
  }

  #wake(id: string): void {
    for (const wake of this.#waiters.get(id) ?? []) wake();
  }

  #lost(client: Client, error: Error): void {
    if (this.#closed || this.#client !== client) return;
    this.#client = undefined;
    this.#onError(error);
    // LISTEN can fail on a working connection, so it may still be open.
    client.end().catch(this.#onError);
    for (const id of this.#waiters.keys()) this.#wake(id);
    this.#reconnect = setTimeout(() => {
      this.start().then(
        () => {
          for (const id of this.#waiters.keys()) this.#wake(id);
        },
        (cause: unknown) => {
          const failed = this.#client;
          if (failed !== undefined) this.#lost(failed, cause instanceof Error ? cause : new Error(String(cause)));
        },
      );
    }, RECONNECT_MS);
  }
}
