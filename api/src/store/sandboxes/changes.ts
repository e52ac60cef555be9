// Notifies waiters of changes to sandbox rows by any replica, over one LISTEN connection per
// process. Notices carry no state: a waiter reads the row again. A broken connection wakes every
// waiter.
import { Client } from 'pg';

/** Postgres channel; the payload is the sandbox id. `writeSandboxStatus` notifies on it. */
export const SANDBOX_CHANGES_CHANNEL = 'berth_sandbox_changes';

const RECONNECT_MS = 500;
/**
 * Longest sleep of a waiter before it reads the row again: a notice can be lost with a connection.
 */
const RECHECK_MS = 1_000;

export interface SandboxWatch {
  /**
   * Resolves at the next change since the last call (at once if there was one), after
   * RECHECK_MS, or when the signal aborts. The value is true if there may have been a change.
   */
  next(signal: AbortSignal): Promise<boolean>;
  close(): void;
}

export class SandboxChanges {
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
    await client.query(`listen ${SANDBOX_CHANGES_CHANNEL}`);
  }

  /** Starts to record changes of one sandbox. Watch first, then read the row, to miss no change. */
  watch(sandboxId: string): SandboxWatch {
    let changed = false;
    let resolveNext: (() => void) | undefined;
    const wake = (): void => {
      changed = true;
      resolveNext?.();
    };
    const waiters = this.#waiters.get(sandboxId) ?? new Set();
    waiters.add(wake);
    this.#waiters.set(sandboxId, waiters);
    return {
      next: async (signal) => {
        if (!changed && !signal.aborted) {
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, RECHECK_MS);
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
        if (waiters.size === 0 && this.#waiters.get(sandboxId) === waiters) this.#waiters.delete(sandboxId);
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

  #wake(sandboxId: string): void {
    for (const wake of this.#waiters.get(sandboxId) ?? []) wake();
  }

  #lost(client: Client, error: Error): void {
    if (this.#closed || this.#client !== client) return;
    this.#client = undefined;
    this.#onError(error);
    // LISTEN can fail on a working connection, so it may still be open.
    client.end().catch(this.#onError);
    for (const sandboxId of this.#waiters.keys()) this.#wake(sandboxId);
    this.#reconnect = setTimeout(() => {
      this.start().then(
        () => {
          for (const sandboxId of this.#waiters.keys()) this.#wake(sandboxId);
        },
        (cause: unknown) => {
          const failed = this.#client;
          if (failed !== undefined) this.#lost(failed, cause instanceof Error ? cause : new Error(String(cause)));
        },
      );
    }, RECONNECT_MS);
  }
}
