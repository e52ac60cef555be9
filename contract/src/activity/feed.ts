// The activity feed of an org.
import { z } from 'zod';
import { activityKind } from '../route/activity-kinds.ts';
import { ACTIVITY_EXPORT, ACTIVITY_PAGE } from '../route/limits.ts';
import { numberInQuery } from '../route/number-in-query.ts';
import { pageQuery } from '../route/page.ts';
import { defineRoute } from '../route/route.ts';
import { idText, timestamp } from '../route/text.ts';

/**
 * `file_link`: the holder of a file link. `operator`: a person with a shell on the host. `system`:
 * the service itself, in a durable step or on a timer.
 */
export const activityActorKind = z.enum(['session', 'api_key', 'agent_token', 'file_link', 'operator', 'system']);
export type ActivityActorKind = z.infer<typeof activityActorKind>;

/** Kind of the resource that changed. Entries have these kinds, or those of another version. */
export const activitySubjectKind = z.enum([
  'org',
  'user',
  'invitation',
  'api_key',
  'agent_token',
  'sign_in',
  'project',
  'sandbox',
  'preview_link',
  'agent_session',
]);
export type ActivitySubjectKind = z.infer<typeof activitySubjectKind>;

const listed = (kinds: readonly string[]): string => kinds.map((kind) => `\`${kind}\``).join(', ');

export const activityEntry = z
  .strictObject({
    id: idText,
    at: timestamp,
    /**
     * The kinds are text: an entry of another version must not hide the others. Writes are limited
     * to {@link activityKind}, {@link activityActorKind} and {@link activitySubjectKind}.
     */
    kind: z
      .string()
      .describe(
        'Kind of event, noun first, such as `sandbox_created`. More may be added; clients must accept unknown values.',
      ),
    actor: z.strictObject({
      kind: z
        .string()
        .describe(`${listed(activityActorKind.options)}. More may be added; clients must accept unknown values.`),
      id: idText.nullable().describe('Id of the API key, personal agent token or file link; null for other actors.'),
      userId: idText
        .nullable()
        .describe('Id of the user who called, or as whom the key or token acts, or who created the link.'),
    }),
    subject: z.strictObject({
      kind: z
        .string()
        .describe(`${listed(activitySubjectKind.options)}. More may be added; clients must accept unknown values.`),
      id: idText,
    }),
    orgId: idText,
    projectId: idText.nullable(),
    sandboxId: idText.nullable(),
    reason: z.string().nullable().describe('Human-readable reason; null when there is none.'),
    requestId: z.string().nullable().describe('`x-request-id` of the call that caused it; null when no call did.'),
    details: z.record(z.string(), z.unknown()).describe('Further data; its fields depend on the kind.'),
  })
  .meta({ id: 'ActivityEntry', description: 'An event in an org.' });
export type ActivityEntry = z.infer<typeof activityEntry>;

const exportedEntry = activityEntry
  .extend({ cursor: z.string().describe('Value of `after` that continues behind this entry.') })
  .meta({ id: 'ExportedActivityEntry', description: 'An event in an org, as a line of the export.' });

export const listActivity = defineRoute({
  name: 'listActivity',
  summary: `Lists the events of the org, newest first; a page has ${ACTIVITY_PAGE.default} entries unless limit is set`,
  method: 'GET',
  path: '/v1/orgs/{orgId}/activity',
  auth: ['session', 'api_key'],
  permission: 'activity.read',
  request: {
    params: z.object({ orgId: idText }),
    query: pageQuery.extend({
      kind: activityKind.optional(),
      projectId: idText.optional(),
      sandboxId: idText.optional(),
    }),
  },
  response: {
    status: 200,
    body: z.strictObject({ activity: z.array(activityEntry), nextCursor: z.string().nullable(), hasMore: z.boolean() }),
  },
  errors: [],
  activity: null,
  published: false,
});

export const exportActivity = defineRoute({
  name: 'exportActivity',
  summary:
    `Exports the events of the org as NDJSON, oldest first, at most ${ACTIVITY_EXPORT.entries} in a response; ` +
    'continue with the `cursor` of the last line until a response is empty. Entries of the last ' +
    `${ACTIVITY_EXPORT.delaySeconds / 60} minutes are exported later`,
  method: 'GET',
  path: '/v1/orgs/{orgId}/activity/export',
  auth: ['session', 'api_key'],
  permission: 'activity.read',
  request: {
    params: z.object({ orgId: idText }),
    query: z.strictObject({
      limit: numberInQuery({ min: 1, max: ACTIVITY_EXPORT.entries, description: 'Maximum number of entries.' }).default(
        ACTIVITY_EXPORT.entries,
      ),
      after: pageQuery.shape.after.describe('The `cursor` of the last entry that was exported.'),
    }),
  },
  response: { status: 200, body: z.array(exportedEntry), ndjson: true },
  errors: [],
  activity: null,
  published: false,
});
