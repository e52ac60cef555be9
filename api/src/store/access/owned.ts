// To which org something that a path names belongs. SQL only; access is decided by the answer, so
// each has a row here that paths below an org name.
import type { NamedInPath } from '@berth/contract/route/route.ts';
import { isId } from '../database/ids.ts';
import type { Database } from '../database/schema.ts';

export interface OwnedResource {
  orgId: string;
  /** There is a row, but for its own org there is nothing any more. */
  gone: boolean;
}

type Locate = (db: Database, id: string) => Promise<OwnedResource | undefined>;

/** By the parameter's name. Sandboxes are found by their own query, whose row the routes use. */
export const OWNED_LOCATORS: { readonly [name in Exclude<NamedInPath, 'sandboxId'>]: Locate } = {
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
  invitationId: async (db, id) => {
    if (!isId('invitation', id)) return undefined;
    const row = await db.selectFrom('invitation').select('org_id').where('id', '=', id).executeTakeFirst();
    return row && { orgId: row.org_id, gone: false };
  },
};
