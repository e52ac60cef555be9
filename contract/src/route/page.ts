// Pagination: query and response fields. Without `limit` and `after` a list is returned whole
// (spec: the lists' shapes).
import { z } from 'zod';
import { LIST_LIMIT } from './limits.ts';
import { numberInQuery } from './number-in-query.ts';

const limit = numberInQuery({
  min: 1,
  max: LIST_LIMIT.max,
  description:
    'Maximum number of items. Without `limit` and `after` the whole list is returned, unless the operation ' +
    'states a page size.',
});
const cursor = z.string().min(1).max(200).describe('The `nextCursor` of the previous page.');

export const pageQuery = z.strictObject({ limit: limit.optional(), after: cursor.optional() });
export type PageQuery = z.output<typeof pageQuery>;

/** Present only if the query has `limit` or `after`. */
export const pageFields = {
  nextCursor: z
    .string()
    .nullable()
    .optional()
    .describe(
      'Value of `after` for the next page; null on the last page. Present only if the query has `limit` or `after`.',
    ),
  hasMore: z
    .boolean()
    .optional()
    .describe('Whether there is a next page. Present only if the query has `limit` or `after`.'),
};
