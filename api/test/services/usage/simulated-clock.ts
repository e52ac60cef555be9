// A database whose clock a test sets: every statement that names now() or clock_timestamp() gets
// the test's instant, the statements themselves unchanged. Defaults of columns keep the real clock,
// as they were bound when the table was made.
import pg from 'pg';

export class SimulatedClock {
  readonly #client: pg.Client;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  /** Every connection that is dialled from here on has this clock. */
  static async start(databaseUrl: string, at: Date): Promise<SimulatedClock> {
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    const { rows } = await client.query<{ name: string }>('select quote_ident(current_database()) as name');
    await client.query('create schema simulated');
    await client.query('create table simulated.instant (at timestamptz not null)');
    await client.query('insert into simulated.instant values ($1)', [at]);
    for (const name of ['now', 'clock_timestamp', 'statement_timestamp', 'transaction_timestamp']) {
      await client.query(
        `create function simulated.${name}() returns timestamptz stable language sql as 'select at from simulated.instant'`,
      );
    }
    // What stands first in the path is found first, once the system's own schema is named in it
    // too.
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
