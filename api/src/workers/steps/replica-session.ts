// This process's session with Postgres, which holds the advisory locks that mark this executor as
// alive and leader. Owns a connection outside every pool, and reconnects when it breaks. Locks only
// avoid duplicate work: the work itself is fenced. Postgres ends a session that is silent for the
// lease, so a paused or hung process loses its locks by the server's clock alone.
import pg from 'pg';
import type { Logger } from 'pino';

const RECONNECT_MS = 100;
const QUERY_TIMEOUT_MS = 5_000;
/**
 * After a break, take over no executor for this long: after an outage of Postgres every replica
 * reconnects.
 */
const QUIET_AFTER_BREAK_MS = 3_000;
const LEASE_MS = 15_000;

interface ReplicaSessionOptions {
  databaseUrl: string;
  /** Id of this process among the executors of durable steps. */
  executorId: string;
  log: Logger;
  /** Silence after which Postgres ends the session. */
  leaseMs?: number;
}

export class ReplicaSession {
  readonly #options: ReplicaSessionOptions;
  readonly #leases = new Set<string>();
  /** The session, once it holds its lock. */
  #client: pg.Client | undefined;
  /** A connection that is about to become the session. */
  #opening: pg.Client | undefined;
  /**
   * Settles with the last query: several schedules share the connection, which runs queries in
   * turn.
   */
  #lastQuery: Promise<unknown> = Promise.resolve();
  #reconnect: NodeJS.Timeout | undefined;
  #heartbeat: NodeJS.Timeout | undefined;
  #quietUntil = 0;
  #closed = false;

  constructor(options: ReplicaSessionOptions) {
    this.#options = options;
  }

  /** Connects and marks this executor as alive. Must precede the first claim of a step. */
  async open(): Promise<void> {
    const leaseMs = this.#options.leaseMs ?? LEASE_MS;
    const client = new pg.Client({
      connectionString: this.#options.databaseUrl,
      application_name: 'berth-api-session',
      connectionTimeoutMillis: QUERY_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
      // The server detects a dead replica host within half a minute and releases its locks.
      options:
        '-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3' +
        ` -c idle_session_timeout=${leaseMs}`,
    });
    // Until the client becomes the session it may break at any moment. Only this call handles that:
    // concurrent reconnects would block each other's lock.
    let broken: Error | undefined;
    const onBroken = (error: Error): void => {
      broken ??= error;
      this.#onConnectionLost(client, error);
    };
    client.on('error', onBroken);
    client.on('end', () => onBroken(new Error('the Postgres session was closed')));
    this.#opening = client;
    try {
      await client.connect();
      if (!(await tryLock(client, executorLock(this.#options.executorId))))
        throw new Error(`another process runs as executor ${this.#options.executorId}`);

      if (broken !== undefined) throw broken;
      if (this.#closed) throw new Error('this process has closed its Postgres session');
      this.#client = client;
      this.#heartbeat = setInterval(() => this.#sendHeartbeat(client), leaseMs / 3);
    } catch (error) {
      await client
        .end()
        .catch((cause: unknown) =>
          this.#options.log.debug({ err: cause }, 'could not close an unopened Postgres session'),
        );
      throw error;
    } finally {
      this.#opening = undefined;
    }
  }

  /** True if this replica leads `task`. The first caller leads until its session ends. */
  async isLeader(task: string): Promise<boolean> {
    const client = this.#client;
    if (client === undefined) return false;
    if (this.#leases.has(task)) return true;
    if (!(await this.#serialize(() => tryLock(client, `berth:task:${task}`)))) return false;
    if (this.#client === client) this.#leases.add(task);
    return this.#client === client;
  }

  /**
   * Runs `takeOver` while it is certain that no live process runs as this executor. Returns false
   * when the executor is alive or its state is unknown.
   */
  async runIfDead(executorId: string, takeOver: () => Promise<void>): Promise<boolean> {
    const client = this.#client;
    if (client === undefined || Date.now() < this.#quietUntil) return false;
    if (!(await this.#serialize(() => tryLock(client, executorLock(executorId))))) return false;
    try {
      await takeOver();
    } finally {
      await this.#serialize(() =>
        client.query('select pg_advisory_unlock(hashtextextended($1, 0))', [executorLock(executorId)]),
      );
    }
    return true;
  }

  /** Releases all locks and closes the connection. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#reconnect);
    clearInterval(this.#heartbeat);
    const [client, opening] = [this.#client, this.#opening];
    this.#client = undefined;
    await Promise.all([client?.end(), opening?.end()]);
  }

  async #serialize<T>(query: () => Promise<T>): Promise<T> {
    const asked = this.#lastQuery.then(query);
    // The caller handles the failure; the next query in line is not affected.
    this.#lastQuery = asked.then(
      () => undefined,
      () => undefined,
    );
    return await asked;
  }

  #sendHeartbeat(client: pg.Client): void {
    this.#serialize(() => client.query('select')).catch((error: unknown) =>
      this.#options.log.debug({ err: error }, 'the Postgres session did not respond'),
    );
  }

  #onConnectionLost(client: pg.Client, error: Error): void {
    if (this.#closed || this.#client !== client) return;
    this.#options.log.warn({ err: error }, 'lost the Postgres session; reconnecting');
    this.#client = undefined;
    clearInterval(this.#heartbeat);
    this.#leases.clear();
    this.#scheduleReconnect();
  }

  #scheduleReconnect(): void {
    this.#quietUntil = Date.now() + QUIET_AFTER_BREAK_MS;
    this.#reconnect = setTimeout(() => {
      this.open().then(
        () => this.#options.log.info('Postgres session restored'),
        (error: unknown) => {
          if (this.#closed) return;
          this.#options.log.debug({ err: error }, 'Postgres session not restored yet; retrying');
          this.#scheduleReconnect();
        },
      );
    }, RECONNECT_MS);
  }
}

function executorLock(executorId: string): string {
  return `berth:executor:${executorId}`;
}

async function tryLock(client: pg.Client, name: string): Promise<boolean> {
  const { rows } = await client.query<{ locked: boolean }>(
    'select pg_try_advisory_lock(hashtextextended($1, 0)) as locked',
    [name],
  );
  return rows[0]?.locked === true;
}
