// Secrets that the replicas have loaded, by id, and the last use of each secret key. SQL only.
import { sql } from 'kysely';
import type { Database } from '../database/schema.ts';

/** Ids of a replica's secrets, the current one first. */
interface LoadedSecrets {
  secretKeyIds: string[];
  hostTokenIds: string[];
}

/** Records the secrets of a live replica, and forgets replicas that stopped reporting. */
export async function reportSecrets(db: Database, replicaId: string, loaded: LoadedSecrets): Promise<void> {
  const row = {
    secret_key_ids: loaded.secretKeyIds,
    host_token_ids: loaded.hostTokenIds,
    reported_at: sql<Date>`now()`,
  };
  await db.transaction().execute(async (trx) => {
    await trx
      .insertInto('secret_replica')
      .values({ replica_id: replicaId, ...row })
      .onConflict((conflict) => conflict.column('replica_id').doUpdateSet(row))
      .execute();
    await trx
      .insertInto('secret_key_use')
      .values({ key_id: loaded.secretKeyIds[0] ?? '', current_at: sql<Date>`now()` })
      .onConflict((conflict) => conflict.column('key_id').doUpdateSet({ current_at: sql<Date>`now()` }))
      .execute();
    await trx
      .deleteFrom('secret_replica')
      .where('reported_at', '<', sql<Date>`now() - interval '10 minutes'`)
      .execute();
  });
}

export async function forgetReplica(db: Database, replicaId: string): Promise<void> {
  await db.deleteFrom('secret_replica').where('replica_id', '=', replicaId).execute();
}

/** Secrets of the replicas that reported within the time. */
export async function liveReplicas(db: Database, withinSeconds: number): Promise<LoadedSecrets[]> {
  return await db
    .selectFrom('secret_replica')
    .select(['secret_key_ids as secretKeyIds', 'host_token_ids as hostTokenIds'])
    .where('reported_at', '>', sql<Date>`now() - make_interval(secs => ${withinSeconds})`)
    .orderBy('replica_id')
    .execute();
}

/** Key ids and the seconds since each was last current. */
export async function secondsSinceUse(db: Database): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('secret_key_use')
    .select(['key_id', sql<number>`extract(epoch from now() - current_at)::float8`.as('seconds')])
    .execute();
  return new Map(rows.map(({ key_id: id, seconds }) => [id, seconds]));
}
