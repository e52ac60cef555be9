// File links: URLs with which anyone downloads or uploads one file of a sandbox, without a token.
// A link is not stored: its URL has its terms, sealed under the installation's secret key.
import { z } from 'zod';
import { exampleFileLink } from '../route/examples.ts';
import { FILE_LINK_SECONDS } from '../route/limits.ts';
import { defineRoute } from '../route/route.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';
import { CONTROL, idText, textWithout, timestamp } from '../route/text.ts';
import { filePath } from './files.ts';

/**
 * Limits of the uses of file links. `transfersAtOnce`: open uses of all links of an org on an
 * API replica, waiting ones included; a link takes at most half of those that others leave. Of a
 * sandbox, `atOnce` run on a replica: fewer than its VM serves, so that the links of one replica
 * never take all.
 * `waitSeconds`: longest wait for a place.
 */
export const FILE_LINKS = {
  transfersAtOnce: 64,
  ofSandbox: { atOnce: 2, waiting: 16 },
  waitSeconds: 20,
} as const;

/** Path below which the links are; their URL has no other host than the service's. */
export const FILE_LINK_PATH = '/file-links';

/** Longest name of most file systems. */
const FILE_NAME_CHARACTERS = 255;

const fileLinkAction = z
  .enum(['read', 'write'])
  .meta({ id: 'FileLinkAction', description: '`read`: GET sends the file. `write`: PUT writes it.' });

/** Each is of one action; the other refuses it. */
const READ_ONLY = ['fileName'] as const;
const WRITE_ONLY = ['maxBytes', 'overwrite'] as const;

const createFileLinkBody = z
  .strictObject({
    path: filePath,
    action: fileLinkAction.describe('`write` also requires the permission `sandbox.files.write`.'),
    expiresInSeconds: z.int().min(FILE_LINK_SECONDS.min).max(FILE_LINK_SECONDS.max).default(FILE_LINK_SECONDS.default),
    maxBytes: z
      .int()
      .min(0)
      .max(Number.MAX_SAFE_INTEGER)
      .optional()
      .describe('Only with `write`: a larger upload is 413 `file_too_large`. By default unlimited.'),
    overwrite: z
      .boolean()
      .optional()
      .describe('Only with `write`. `false`: an existing file is 409 `file_exists`. By default true.'),
    fileName: textWithout(
      String.raw`${CONTROL}/\\`,
      1,
      FILE_NAME_CHARACTERS,
      'must be a file name: no slashes, backslashes, control characters or lone surrogates',
    )
      .meta({ examples: ['report.pdf'] })
      .optional()
      .describe('Only with `read`: name of the download. By default the last segment of the path.'),
  })
  .superRefine((body, context) => {
    const [names, of] = body.action === 'read' ? [WRITE_ONLY, 'write'] : [READ_ONLY, 'read'];
    for (const name of names) {
      if ((body as Record<string, unknown>)[name] !== undefined)
        context.addIssue({ code: 'custom', path: [name], message: `is allowed only with the action ${of}` });
    }
  })
  .describe('The fields of the other action are refused.');
export type CreateFileLinkBody = z.output<typeof createFileLinkBody>;

const fileLink = z
  .strictObject({
    id: idText.describe('Id of the link in the activity feed.'),
    url: z.string().describe('Grants the action to anyone who has it. Cannot be read again.'),
    method: z.enum(['GET', 'PUT']).describe('Method of the request that uses the link.'),
    path: z.string().describe('The absolute path.'),
    action: fileLinkAction,
    expiresAt: timestamp,
  })
  .meta({ id: 'FileLink', description: 'A URL with which anyone reads or writes one file of a sandbox.' });
export type FileLink = z.infer<typeof fileLink>;

export const createFileLink = defineRoute({
  name: 'createFileLink',
  summary:
    'Creates a link with which anyone reads or writes one file, asleep or awake. A link that writes also requires ' +
    'sandbox.files.write',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/files/links',
  auth: ['session', 'api_key'],
  permission: 'sandbox.files.read',
  request: { params: sandboxParams, body: createFileLinkBody },
  response: { status: 201, body: z.strictObject({ link: fileLink }) },
  errors: ['not_a_file', 'file_path_invalid', 'sandbox_state_conflict'],
  activity: 'sandbox_file_link_created',
  published: true,
  example: {
    body: { path: 'report.pdf', action: 'read', expiresInSeconds: 900 },
    answer: { link: exampleFileLink },
  },
});
