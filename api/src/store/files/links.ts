// The facts behind a use of a file link. SQL only; the link itself is not stored.
import { sql } from 'kysely';
import type { LinkCreator } from '../../rules/previews/link-creator.ts';
import type { Database } from '../database/schema.ts';
import type { LocatedSandboxRow } from '../sandboxes/sandboxes.ts';

interface FileLinkAccessRow {
  sandbox: LocatedSandboxRow;
  creator: LinkCreator;
}

/** The sandbox, and what its org makes of the link's creator at present. */
export async function findFileLinkAccess(
  db: Database,
  sandboxId: string,
  { userId, keyId }: { userId: string; keyId: string | null },
): Promise<FileLinkAccessRow | undefined> {
  const row = await db
    .selectFrom('sandbox')
    .leftJoin('host', 'host.id', 'sandbox.host_id')
    .leftJoin('membership', (join) =>
      join.onRef('membership.org_id', '=', 'sandbox.org_id').on('membership.user_id', '=', userId),
    )
    .selectAll('sandbox')
    .select([
      'host.url as host_url',
      'membership.role as creator_role',
      sql<boolean>`${keyId}::text is not null and not exists (select from api_key
        where api_key.id = ${keyId} and api_key.revoked_at is null
          and (api_key.expires_at is null or api_key.expires_at > now()))`.as('key_ended'),
    ])
    .where('sandbox.id', '=', sandboxId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { creator_role: role, key_ended: keyRevoked, ...sandbox } = row;
  return { sandbox, creator: { role, keyRevoked } };
}
