// Rows of the mail domains of orgs, and the requirement of single sign-on. SQL only.
import { sql } from 'kysely';
import type { Database, DatabaseTransaction, OrgDomainRow } from '../database/schema.ts';

export type { OrgDomainRow };

const PG_UNIQUE_VIOLATION = '23505';

/** Domains of the org, oldest first, without expired claims. */
export async function listDomains(db: Database, orgId: string): Promise<OrgDomainRow[]> {
  return await db
    .selectFrom('org_domain')
    .selectAll()
    .where('org_id', '=', orgId)
    .where(sql<boolean>`(expires_at is null or expires_at > now())`)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

export async function deleteExpiredClaims(trx: DatabaseTransaction, orgId: string): Promise<void> {
  await trx
    .deleteFrom('org_domain')
    .where('org_id', '=', orgId)
    .where('expires_at', '<=', sql<Date>`now()`)
    .execute();
}

export async function insertClaim(
  trx: DatabaseTransaction,
  claim: { id: string; orgId: string; domain: string; challenge: string; days: number },
): Promise<OrgDomainRow> {
  return await trx
    .insertInto('org_domain')
    .values({
      id: claim.id,
      org_id: claim.orgId,
      domain: claim.domain,
      challenge: claim.challenge,
      expires_at: sql<Date>`now() + ${claim.days} * interval '1 day'`,
      verified_at: null,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** The domain, proven or claimed; undefined if it was removed or its claim has expired. */
export async function findDomain(db: Database, orgId: string, domainId: string): Promise<OrgDomainRow | undefined> {
  return (await listDomains(db, orgId)).find(({ id }) => id === domainId);
}

/**
 * Marks a claim as proven. Undefined if it was removed or has expired; `taken` if another org has
 * proven the domain. One of concurrent orgs wins: the index waits for the other's commit.
 */
export async function proveDomain(
  trx: DatabaseTransaction,
  { orgId, domainId }: { orgId: string; domainId: string },
): Promise<OrgDomainRow | 'taken' | undefined> {
  try {
    return await trx
      .updateTable('org_domain')
      .set({ verified_at: sql<Date>`now()`, expires_at: null })
      .where('id', '=', domainId)
      .where('org_id', '=', orgId)
      .where('expires_at', '>', sql<Date>`now()`)
      .returningAll()
      .executeTakeFirst();
  } catch (error) {
    if ((error as { code?: unknown }).code === PG_UNIQUE_VIOLATION) return 'taken';
    throw error;
  }
}

export async function deleteDomain(trx: DatabaseTransaction, domainId: string): Promise<void> {
  await trx.deleteFrom('org_domain').where('id', '=', domainId).execute();
}

export async function isSsoRequired(db: Database, orgId: string): Promise<boolean> {
  const row = await db.selectFrom('org').select('sso_required').where('id', '=', orgId).executeTakeFirst();
  return row?.sso_required === true;
}

/** Returns false if there is no such org. */
export async function setSsoRequired(db: Database, orgId: string, required: boolean): Promise<boolean> {
  const written = await db
    .updateTable('org')
    .set({ sso_required: required })
    .where('id', '=', orgId)
    .executeTakeFirst();
  return written.numUpdatedRows === 1n;
}
