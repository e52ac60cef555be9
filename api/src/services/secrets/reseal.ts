// Seals stored values again with the current secret key. A killed process loses at most one batch:
// each value names its key.
import type { Database } from '../../store/database/schema.ts';
import {
  lockValuesWithout,
  SEALED_COLUMNS,
  writeSealed,
  type SealedColumn,
} from '../../store/secrets/sealed-values.ts';
import { openText, sealedPrefix, sealText, UnsealError } from '../context/sealed.ts';
import type { SecretKey } from '../context/secret-key.ts';

/** Rows locked at a time. */
const BATCH = 100;

interface Resealed {
  sealed: number;
  /** Values that no key opens; they stay as they are. */
  unreadable: number;
  /** Why one of them does not open. */
  why: string | null;
}

/** Seals every value that another key sealed. Stops early when the signal aborts. */
export async function resealAll(
  { db, secretKey }: { db: Database; secretKey: SecretKey },
  stopping: AbortSignal,
): Promise<Resealed> {
  const total: Resealed = { sealed: 0, unreadable: 0, why: null };
  for (const column of SEALED_COLUMNS) {
    let after: string | null = '';
    while (after !== null && !stopping.aborted) after = await resealBatch(db, secretKey, column, after, total);
  }
  return total;
}

/** Returns the id of the last row of the batch; null after the last batch. */
async function resealBatch(
  db: Database,
  secretKey: SecretKey,
  column: SealedColumn,
  after: string,
  total: Resealed,
): Promise<string | null> {
  const keys = secretKey.keysFor(column.purpose);
  return await db.transaction().execute(async (trx) => {
    const rows = await lockValuesWithout(trx, column, { prefix: sealedPrefix(keys[0].id), after, limit: BATCH });
    for (const { id, sealed } of rows) {
      try {
        await writeSealed(trx, column, id, sealText(keys, id, openText(keys, id, sealed)));
        total.sealed += 1;
      } catch (error) {
        if (!(error instanceof UnsealError)) throw error;
        total.unreadable += 1;
        total.why = error.message;
      }
    }
    return rows.length < BATCH ? null : (rows.at(-1)?.id ?? null);
  });
}
