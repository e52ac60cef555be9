// Change notifications between replicas, also when the listening connection breaks.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '../../../src/store/database/database.ts';
import { CHANGES_CHANNEL, Changes } from '../../../src/store/database/changes.ts';
import type { Database } from '../../../src/store/database/schema.ts';
import { startPostgres, type TestPostgres } from '../../world/database.ts';

const NEVER = new AbortController().signal;
let postgres: TestPostgres;
let url: string;
let db: Database;
before(async () => {
  postgres = await startPostgres();
  url = await postgres.createDatabase();
  ({ db } = openDatabase({ url, maxConnections: 2, statementTimeoutMs: null, onIdleError: () => undefined }));
});
after(async () => {
  await db.destroy();
  await postgres.stop();
});

const notify = (id: string) => sql`select pg_notify(${CHANGES_CHANNEL}, ${id})`.execute(db);

test('a change before the wait is not lost, and each is delivered once', async () => {
  const changes = new Changes(url, () => undefined);
  await changes.start();
  const mine = changes.watch('a');
  const other = changes.watch('b');
  try {
    let toldOther = false;
    const waitingOther = other.next(NEVER).then(() => (toldOther = true));
    await notify('a');
    await mine.next(NEVER);
    assert.equal(toldOther, false);
    await notify('b');
    await waitingOther;
  } finally {
    mine.close();
    other.close();
    await changes.close();
  }
});

test('a wait ends when its signal aborts', async () => {
  const changes = new Changes(url, () => undefined);
  await changes.start();
  const watch = changes.watch('a');
  const gone = new AbortController();
  const waiting = watch.next(gone.signal);
  gone.abort();
  await waiting;
  await watch.next(AbortSignal.abort());
  watch.close();
  await changes.close();
});

test('a broken connection wakes every waiter to check for itself, and listening resumes', async () => {
  const broke = Promise.withResolvers<Error>();
  const changes = new Changes(url, broke.resolve);
  await changes.start();
  const watch = changes.watch('a');
  try {
    const woken = watch.next(NEVER);
    await sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'berth-api-listen'`.execute(db);
    await broke.promise;
    await woken;
    const listening = async (): Promise<boolean> => {
      const { rows } = await sql`
        select 1 from pg_stat_activity
        where datname = current_database() and application_name = 'berth-api-listen'
          and query like 'listen %'`.execute(db);
      return rows.length === 1;
    };
    while (!(await listening())) await new Promise((resolve) => setTimeout(resolve, 20));
    await notify('a');
    await watch.next(NEVER);
  } finally {
    watch.close();
    await changes.close();
  }
});
