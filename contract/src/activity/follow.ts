// New entries of an org's activity feed, as they are committed.
import { z } from 'zod';
import { activityKind } from '../route/activity-kinds.ts';
import { HELD } from '../route/held.ts';
import { ACTIVITY_FOLLOW } from '../route/limits.ts';
import { listInQuery } from '../route/list-in-query.ts';
import { numberInQuery } from '../route/number-in-query.ts';
import { defineRoute } from '../route/route.ts';
import { idText } from '../route/text.ts';
import { activityEntry } from './feed.ts';

export const followActivity = defineRoute({
  name: 'followActivity',
  summary:
    'Returns the entries committed after the cursor, oldest first, each once and with no gap. Without `since`, ' +
    `returns no entry and the cursor of this moment. Held ${HELD} until there is an entry`,
  method: 'GET',
  path: '/v1/orgs/{orgId}/activity/follow',
  auth: ['session', 'api_key'],
  permission: 'activity.read',
  request: {
    params: z.object({ orgId: idText }),
    query: z.strictObject({
      since: z.string().min(1).max(200).optional().describe('The `cursor` of the previous response.'),
      kind: listInQuery(activityKind, { max: activityKind.options.length })
        .optional()
        .describe('Only entries of these kinds; repeatable.'),
      exceptKind: listInQuery(activityKind, { max: activityKind.options.length })
        .optional()
        .describe('No entries of these kinds; repeatable.'),
      projectId: idText.optional(),
      sandboxId: idText.optional(),
      limit: numberInQuery({ min: 1, max: ACTIVITY_FOLLOW.max, description: 'Maximum number of entries.' }).default(
        ACTIVITY_FOLLOW.default,
      ),
    }),
  },
  response: {
    status: 200,
    body: z.strictObject({
      activity: z.array(activityEntry),
      cursor: z.string().describe('Value of `since` for the next request.'),
      hasMore: z.boolean().describe('Whether there are more entries already.'),
    }),
  },
  errors: [],
  activity: null,
  holds: true,
  published: false,
});
