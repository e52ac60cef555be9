// The routes that list and count an org's sandboxes.
import { z } from 'zod';
import { exampleSandbox } from '../route/examples.ts';
import { NAME_CHARACTERS } from '../route/limits.ts';
import { listInQuery } from '../route/list-in-query.ts';
import { pageFields, pageQuery } from '../route/page.ts';
import { defineRoute } from '../route/route.ts';
import { idText, text } from '../route/text.ts';
import { metadata } from './fields.ts';
import { endUserId, orgParams, sandbox } from './sandboxes.ts';
import { sandboxStatus } from './state.ts';

/** Statuses of listed sandboxes. */
const listedStatus = sandboxStatus.exclude(['deleted']);

/** Orders of the list; `-` reverses an order. */
const SANDBOX_SORTS = ['createdAt', '-createdAt', 'lastActiveAt', '-lastActiveAt'] as const;
export type SandboxSort = (typeof SANDBOX_SORTS)[number];

/** Filters of the list; a sandbox must match all. */
const sandboxFilter = {
  endUserId: endUserId.optional().describe('Returns only sandboxes of this end user.'),
  projectId: idText.optional().describe('Returns only sandboxes of this project.'),
  name: text(1, NAME_CHARACTERS).optional().describe('Returns only sandboxes of exactly this name.'),
  createdBy: idText
    .optional()
    .describe("Returns only sandboxes that this user created; for an API key, the key's creator."),
  q: text(1, NAME_CHARACTERS)
    .optional()
    .describe('Returns only sandboxes whose name contains this text, in any case, or whose id begins with it.'),
  metadata: metadata
    .optional()
    .describe(
      '`metadata[KEY]=VALUE`: returns only sandboxes with these labels. Numbers and booleans match their text.',
    ),
};

export const listSandboxes = defineRoute({
  name: 'listSandboxes',
  summary: "Lists the org's sandboxes without deleted ones, by default newest first",
  method: 'GET',
  path: '/v1/orgs/{orgId}/sandboxes',
  auth: ['session', 'api_key'],
  permission: 'sandbox.read',
  request: {
    params: orgParams,
    query: pageQuery.extend({
      ...sandboxFilter,
      status: listInQuery(listedStatus, { max: listedStatus.options.length })
        .optional()
        .describe('Returns only sandboxes with one of these statuses. Repeat the parameter for several.'),
      sort: z.enum(SANDBOX_SORTS).optional().describe('Order; `-` is descending. Default: `-createdAt`.'),
    }),
  },
  response: { status: 200, body: z.strictObject({ sandboxes: z.array(sandbox), ...pageFields }) },
  errors: [],
  activity: null,
  published: true,
  example: { query: { limit: 20 }, answer: { sandboxes: [exampleSandbox], nextCursor: null, hasMore: false } },
});

export const countSandboxes = defineRoute({
  name: 'countSandboxes',
  summary: "Counts the org's sandboxes by status, without deleted ones",
  method: 'GET',
  path: '/v1/orgs/{orgId}/sandboxes/counts',
  auth: ['session', 'api_key'],
  permission: 'sandbox.read',
  request: { params: orgParams, query: z.strictObject(sandboxFilter) },
  response: {
    status: 200,
    body: z.strictObject({
      total: z.int().min(0),
      byStatus: z.record(z.string(), z.int().min(0)).describe('Counts of the statuses that occur.'),
    }),
  },
  errors: [],
  activity: null,
  published: true,
  example: { answer: { total: 1, byStatus: { ready: 1 } } },
});
