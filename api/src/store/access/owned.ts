// Finds the org that owns an entity named in a path. SQL only. Access decisions depend on the
// result, so every entity named below an org path has a locator here.
import type { NamedInPath } from '@berth/contract/route/route.ts';
import { isId } from '../database/ids.ts';
import type { Database } from '../database/schema.ts';

export interface OwnedResource {
  orgId: string;
  /** The row exists, but the entity is deleted even for its own org. */
  gone: boolean;
}

type Locate = (db: Database, id: string) => Promise<OwnedResource | undefined>;

/**
 * Locators by path parameter. Sandboxes and agent sessions have a dedicated query, whose row the
 * routes use.
 */
export const OWNED_LOCATORS: { readonly [name in Exclude<NamedInPath, 'sandboxId' | 'sessionId'>]: Locate } = {
  projectId: async (db, id) => {
    if (!isId('project', id)) return undefined;
    const row = await db.selectFrom('project').select(['org_id', 'deleted_at']).where('id', '=', id).executeTakeFirst();
    return row && { orgId: row.org_id, gone: row.deleted_at !== null };
  },
  keyId: async (db, id) => {
    if (!isId('apiKey', id)) return undefined;
    const row = await db.selectFrom('api_key').select('org_id').where('id', '=', id).executeTakeFirst();
    return row && { orgId: row.org_id, gone: false };
  },
  domainId: async (db, id) => {
    if (!isId('domain', id)) return undefined;
    const row = await db.selectFrom('org_domain').select('org_id').where('id', '=', id).executeTakeFirst();
    return row && { orgId: row.org_id, gone: false };
  },
  invitationId: async (db, id) => {
    if (!isId('invitation', id)) return undefined;
    const row = await db.selectFrom('invitation').select('org_id').where('id', '=', id).executeTakeFirst();
    return row && { orgId: row.org_id, gone: false };
  },
};
