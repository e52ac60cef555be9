// Preview links: addresses at which a port of a sandbox is seen in a browser. A team link stores
// nothing and opens for signed-in members of the sandbox's org; a public link is a row of its own
// that opens for whoever has its URL, until it expires or is revoked.
import { z } from 'zod';
import { examplePreview } from '../route/examples.ts';
import { END_USER_ID_CHARACTERS, PORT, PREVIEW_LABEL_CHARACTERS, PREVIEW_SECONDS } from '../route/limits.ts';
import { pageFields, pageQuery } from '../route/page.ts';
import { defineRoute } from '../route/route.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';
import { idText, nameInPath, text, timestamp } from '../route/text.ts';

export const previewAudience = z.enum(['team', 'public']).meta({
  id: 'PreviewAudience',
  description: '`team`: signed-in members of the org of the sandbox. `public`: whoever has the URL.',
});
export type PreviewAudience = z.infer<typeof previewAudience>;

/** The table is complete: unknown fields are refused by name. */
export const createPreviewBody = z.strictObject({
  port: z
    .int()
    .min(PORT.min)
    .max(PORT.max)
    .describe("A TCP port of the sandbox; not that of the service's own daemon in it."),
  audience: previewAudience.default('team').describe('`public` needs the permission `sandbox.preview.share` besides.'),
  expiresInSeconds: z.int().min(PREVIEW_SECONDS.min).max(PREVIEW_SECONDS.max).default(PREVIEW_SECONDS.default),
  endUserId: text(1, END_USER_ID_CHARACTERS).optional(),
  label: text(1, PREVIEW_LABEL_CHARACTERS).optional(),
});
export type CreatePreviewBody = z.output<typeof createPreviewBody>;

export const preview = z
  .strictObject({
    id: idText.nullable().describe('null of a team link, which is not stored.'),
    audience: previewAudience,
    port: z.int().min(PORT.min).max(PORT.max),
    url: z
      .string()
      .nullable()
      .describe(
        'What to open. null of a link that was revoked, and for a caller who may not share (`sandbox.preview.share`): whoever has it could.',
      ),
    expiresAt: timestamp,
    label: z.string().nullable(),
    endUserId: z.string().nullable(),
    createdAt: timestamp,
    lastUsedAt: timestamp.nullable().describe('To the minute; null: not yet, or a team link.'),
    revokedAt: timestamp.nullable(),
  })
  .meta({ id: 'Preview', description: 'A link to a port of a sandbox.' });
export type Preview = z.infer<typeof preview>;

export const createPreview = defineRoute({
  name: 'createPreview',
  summary: 'Makes a link to a port of the sandbox, asleep or awake. A public one needs sandbox.preview.share besides',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/previews',
  auth: ['session', 'api_key'],
  permission: 'sandbox.preview',
  request: { params: sandboxParams, body: createPreviewBody },
  response: { status: 201, body: z.strictObject({ preview }) },
  errors: ['port_forbidden', 'sandbox_state_conflict', 'preview_link_limit'],
  activity: 'preview_link_created',
  published: true,
  example: {
    body: { port: 3_000, audience: 'public', expiresInSeconds: 3_600, label: 'demo' },
    answer: { preview: examplePreview },
  },
});

export const listPreviews = defineRoute({
  name: 'listPreviews',
  summary: "The sandbox's public links that are neither expired nor revoked, newest first",
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/previews',
  auth: ['session', 'api_key'],
  permission: 'sandbox.preview',
  request: { params: sandboxParams, query: pageQuery },
  response: { status: 200, body: z.strictObject({ previews: z.array(preview), ...pageFields }) },
  errors: [],
  activity: null,
  published: true,
});

export const revokePreview = defineRoute({
  name: 'revokePreview',
  summary: 'Revokes a public link, on every instance within seconds; doing it again changes nothing',
  method: 'DELETE',
  path: '/v1/sandboxes/{sandboxId}/previews/{previewId}',
  auth: ['session', 'api_key'],
  permission: 'sandbox.preview.share',
  request: { params: sandboxParams.extend({ previewId: nameInPath }) },
  response: { status: 200, body: z.strictObject({ preview }) },
  errors: ['preview_link_not_found'],
  activity: 'preview_link_revoked',
  published: true,
});
