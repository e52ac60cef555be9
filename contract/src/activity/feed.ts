// The org's activity feed as callers read it.
import { z } from 'zod';
import { activityKind } from '../route/activity-kinds.ts';
import { ACTIVITY_PAGE } from '../route/limits.ts';
import { pageQuery } from '../route/page.ts';
import { defineRoute } from '../route/route.ts';
import { idText, timestamp } from '../route/text.ts';

/**
 * `operator`: a person on the machine itself. `system`: the service, carrying out what somebody
 * asked for or what time brings.
 */
export const activityActorKind = z.enum(['session', 'api_key', 'agent_token', 'operator', 'system']);

/** What the entry is about. */
export const activitySubjectKind = z.enum([
  'org',
  'user',
  'invitation',
  'api_key',
  'agent_token',
  'project',
  'sandbox',
  'preview_link',
]);

export const activityEntry = z
  .strictObject({
    id: idText,
    at: timestamp,
    /**
     * One of {@link activityKind}, or of a former version's: what a version no longer writes stays
     * in the feed.
     */
    kind: z.string().describe('What happened, noun first, such as `sandbox_created`. Further ones will come.'),
    actor: z.strictObject({
      kind: activityActorKind,
      id: idText.nullable().describe("The API key's or personal token's id; null otherwise."),
      userId: idText.nullable().describe('The person who called, or whom the key or token acts as.'),
    }),
    subject: z.strictObject({ kind: activitySubjectKind, id: idText }),
    orgId: idText,
    projectId: idText.nullable(),
    sandboxId: idText.nullable(),
    reason: z.string().nullable().describe('Why, where there is something to say; for people.'),
    requestId: z
      .string()
      .nullable()
      .describe('`x-request-id` of the call that did it; null for what no call did by itself.'),
    details: z.record(z.string(), z.unknown()).describe('What else belongs to the kind.'),
  })
  .meta({ id: 'ActivityEntry', description: 'Something that happened in an org.' });
export type ActivityEntry = z.infer<typeof activityEntry>;

export const listActivity = defineRoute({
  name: 'listActivity',
  summary: `What happened in the org, newest first, in pages of ${ACTIVITY_PAGE.default} unless limit says otherwise`,
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
