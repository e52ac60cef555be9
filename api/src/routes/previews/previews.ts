// Wire format of preview links.
import { createPreview, listPreviews, revokePreview, type Preview } from '@berth/contract/previews/previews.ts';
import * as previews from '../../services/previews/previews.ts';
import { bind } from '../../call/bind.ts';

export const previewRoutes = [
  bind(createPreview, async (context, { actor, sandbox, body }) => {
    const made = await previews.createPreview(context, actor, sandbox, body);
    return { preview: 'team' in made ? viewTeamLink(made.team) : viewPublicLink(made.public) };
  }),
  bind(listPreviews, async (context, { actor, sandbox, query }) => {
    const { links, fields } = await previews.listPreviews(context, actor, sandbox, query);
    return { previews: links.map(viewPublicLink), ...fields };
  }),
  bind(revokePreview, async (context, { actor, sandbox, params }) => ({
    preview: viewPublicLink(await previews.revokePreview(context, actor, sandbox, params.previewId)),
  })),
];

function viewPublicLink({ row, url, inactiveReason }: previews.PublicLink): Preview {
  return {
    id: row.id,
    audience: 'public',
    port: row.port,
    url,
    expiresAt: row.expires_at.toISOString(),
    label: row.label,
    endUserId: row.end_user_id,
    embeddable: row.embeddable,
    createdAt: row.created_at.toISOString(),
    lastUsedAt: row.last_used_at?.toISOString() ?? null,
    revokedAt: row.revoked_at?.toISOString() ?? null,
    inactiveReason,
  };
}

function viewTeamLink(link: previews.TeamLink): Preview {
  const { port, url, expiresAt, label, endUserId, embeddable, createdAt } = link;
  return {
    id: null,
    audience: 'team',
    port,
    url,
    expiresAt: expiresAt.toISOString(),
    label,
    endUserId,
    embeddable,
    createdAt: createdAt.toISOString(),
    lastUsedAt: null,
    revokedAt: null,
    inactiveReason: null,
  };
}
