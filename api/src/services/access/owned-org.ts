// Orgs that the commands on the host act for.
import type { Database } from '../../store/database/schema.ts';
import { findOperatorOrgId, findOrg, findOwnedOrg } from '../../store/people/identity.ts';

/** The given org, or the operator's, and its first owner. Throws with the remedy without them. */
export async function requireOwnedOrg(db: Database, orgId?: string): Promise<{ orgId: string; ownerId: string }> {
  const found = await findOwnedOrg(db, orgId);
  if (found !== undefined) return found;
  const unowned = orgId === undefined ? await findOperatorOrgId(db) : (await findOrg(db, orgId))?.id;
  if (unowned !== undefined) {
    throw new Error(
      `the ${orgId === undefined ? "operator's org" : 'org'} ${unowned} has no owner: ` +
        "in Postgres, give one of its members the role 'owner'",
    );
  }
  throw new Error(orgId === undefined ? 'there is no org yet: start the service once' : `there is no org ${orgId}`);
}
