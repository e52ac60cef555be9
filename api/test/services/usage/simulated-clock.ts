// A database whose clock is set by a test: now() and clock_timestamp() in unchanged statements
// return the test's instant. Column defaults keep the real clock, as they were bound when the table
// was created.
import pg from 'pg';

export class SimulatedClock {
  readonly #client: pg.Client;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  /** Applies to every connection opened from now on. */
  static async start(databaseUrl: string, at: Date): Promise<SimulatedClock> {
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    const { rows } = await client.query<{ name: string }>('select quote_ident(current_database()) as name');
    await client.query('create schema simulated');
    await client.query('create table simulated.instant (at timestamptz not null)');
    await client.query('insert into simulated.instant values ($1)', [at]);
    for (const name of ['now', 'clock_timestamp', 'statement_timestamp', 'transaction_timestamp']) {
      await client.query(
        `create function simulated.${name}() returns timestamptz stable ` +
          `language sql as 'select at from simulated.instant'`,
      );
    }
    // An earlier schema of the path takes precedence once the path also names the system's schema.
    await client.query(`alter database ${rows[0]?.name ?? ''} set search_path = simulated, public, pg_catalog`);
    return new SimulatedClock(client);
  }

  /** In microseconds since 1970. */
  async set(atMicros: number): Promise<void> {
    const iso = new Date(Math.floor(atMicros / 1_000)).toISOString().slice(0, -1);
    await this.#client.query('update simulated.instant set at = $1', [
      `${iso}${String(atMicros % 1_000).padStart(3, '0')}Z`,
    ]);
  }

  async close(): Promise<void> {
    await this.#client.end();
  }
}
