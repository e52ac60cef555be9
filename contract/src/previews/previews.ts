// Preview links: URLs that open a port of a sandbox in a browser. A team link is not stored and
// opens for signed-in members of the sandbox's org. A public link is a row; it opens for anyone who
// has the URL, until it expires or is revoked.
import { z } from 'zod';
import { examplePreview } from '../route/examples.ts';
import { END_USER_ID_CHARACTERS, PORT, PREVIEW_LABEL_CHARACTERS, PREVIEW_SECONDS } from '../route/limits.ts';
import { pageFields, pageQuery } from '../route/page.ts';
import { defineRoute } from '../route/route.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';
import { idText, nameInPath, text, timestamp } from '../route/text.ts';

/**
 * Request headers for programs. `token`: a link's token, or an API key with `sandbox.preview`.
 * `host`: names the preview in a request to the service's own address, for programs that cannot
 * resolve preview hosts. Pages of other origins cannot send them: no preflight is granted.
 */
export const PREVIEW_HEADERS = { token: 'x-berth-preview-token', host: 'x-berth-preview-host' } as const;

export const previewAudience = z.enum(['team', 'public']).meta({
  id: 'PreviewAudience',
  description:
    "Who can open the link. `team`: signed-in members of the sandbox's org. `public`: anyone who has the URL.",
});

/** Reasons why a public link that is neither expired nor revoked does not open. */
const previewInactiveReason = z.enum(['api_key_revoked', 'creator_removed', 'creator_not_permitted']).meta({
  id: 'PreviewInactiveReason',
  description:
    'Reason why a public link does not open although it is neither expired nor revoked. `api_key_revoked`: the API ' +
    'key that created it was revoked. `creator_removed`: its creator is no longer a member of the org. ' +
    "`creator_not_permitted`: its creator's role no longer has `sandbox.preview.share`. More may be added; clients " +
    'must accept unknown values.',
});
export type PreviewInactiveReason = z.infer<typeof previewInactiveReason>;

/** The spec's table, and `embeddable`: unknown fields are rejected. */
const createPreviewBody = z.strictObject({
  port: z
    .int()
    .min(PORT.min)
    .max(PORT.max)
    .describe("TCP port in the sandbox, except the port of Berth's guest daemon."),
  audience: previewAudience.default('team').describe('`public` also requires the permission `sandbox.preview.share`.'),
  expiresInSeconds: z.int().min(PREVIEW_SECONDS.min).max(PREVIEW_SECONDS.max).default(PREVIEW_SECONDS.default),
  endUserId: text(1, END_USER_ID_CHARACTERS).optional(),
  label: text(1, PREVIEW_LABEL_CHARACTERS).optional(),
  embeddable: z
    .boolean()
    .default(false)
    .describe('Allows pages of other origins, other previews included, to show the app in a frame.'),
});
export type CreatePreviewBody = z.output<typeof createPreviewBody>;

const preview = z
  .strictObject({
    id: idText.nullable().describe('null for a team link, which is not stored.'),
    audience: previewAudience,
    port: z.int().min(PORT.min).max(PORT.max),
    url: z
      .string()
      .nullable()
      .describe(
        'URL to open. null for a revoked or inactive link, and for callers without the permission ' +
          '`sandbox.preview.share`, because the URL grants access to anyone.',
      ),
    expiresAt: timestamp,
    label: z.string().nullable(),
    endUserId: z.string().nullable(),
    embeddable: z.boolean().describe('Pages of other origins may show the app in a frame.'),
    createdAt: timestamp,
    lastUsedAt: timestamp.nullable().describe('Accurate to one minute; null for a team link or an unused link.'),
    revokedAt: timestamp.nullable(),
    inactiveReason: previewInactiveReason
      .nullable()
      .describe('Reason why the link does not open at present; create another link to replace it. Otherwise null.'),
  })
  .meta({ id: 'Preview', description: 'A preview link to a port of a sandbox.' });
export type Preview = z.infer<typeof preview>;

export const createPreview = defineRoute({
  name: 'createPreview',
  summary:
    'Creates a preview link to a port of a sandbox, asleep or awake. A public link also requires sandbox.preview.share',
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
  summary: "Lists the sandbox's public links that are neither expired nor revoked, newest first",
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
  summary: 'Revokes a public link, on every API replica within seconds. Idempotent',
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
