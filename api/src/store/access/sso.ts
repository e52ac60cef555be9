// Facts about single sign-on: sign-ins at the OIDC provider, and orgs that require them. SQL only.
import { sql, type RawBuilder } from 'kysely';
import type { SsoTerms } from '../../rules/access/sso.ts';
import type { Database } from '../database/schema.ts';

/** Records that the sign-in came from the OIDC provider, or was approved by such a sign-in. */
export async function markSso(db: Database, loginId: string): Promise<void> {
  await db.updateTable('session').set({ viaSso: true }).where('id', '=', loginId).execute();
}

/** The user's role in the org, and their terms if it requires SSO; undefined if not a member. */
export async function findMembership(
  db: Database,
  orgId: string,
  userId: string,
): Promise<{ role: string; sso: SsoTerms | null } | undefined> {
  return await db
    .selectFrom('membership')
    .innerJoin('org', 'org.id', 'membership.org_id')
    .select(['membership.role', ssoTerms('org', 'membership.user_id').as('sso')])
    .where('membership.org_id', '=', orgId)
    .where('membership.user_id', '=', userId)
    .executeTakeFirst();
}

/** All memberships of a user, as {@link findMembership} has them. */
export async function listMembershipsOf(
  db: Database,
  userId: string,
): Promise<{ org_id: string; role: string; sso: SsoTerms | null }[]> {
  return await db
    .selectFrom('membership')
    .innerJoin('org', 'org.id', 'membership.org_id')
    .select(['membership.org_id', 'membership.role', ssoTerms('org', 'membership.user_id').as('sso')])
    .where('membership.user_id', '=', userId)
    .execute();
}

/** The user's terms in each of their orgs that requires SSO. */
export async function listSsoTerms(db: Database, userId: string): Promise<SsoTerms[]> {
  const rows = await db
    .selectFrom('membership')
    .innerJoin('org', 'org.id', 'membership.org_id')
    .select(ssoTerms('org', 'membership.user_id').as('sso'))
    .where('membership.user_id', '=', userId)
    .where('org.sso_required', '=', true)
    .execute();
  return rows.flatMap(({ sso }) => (sso === null ? [] : [sso]));
}

/** An expression: the SSO terms of a user in an org; null if it does not require SSO. */
export function ssoTerms(org: string, userId: string): RawBuilder<SsoTerms | null> {
  return sql<SsoTerms | null>`${sql.raw(ssoTermsText(org, userId))}`;
}

/** The same as text, for prepared statements. The names are never input. */
export function ssoTermsText(org: string, userId: string): string {
  return `case when ${org}.sso_required then json_build_object(
    'email', (select email from "user" where "user".id = ${userId}),
    'domains', (select coalesce(json_agg(domain), '[]') from org_domain
      where org_domain.org_id = ${org}.id and org_domain.verified_at is not null)) end`;
}
