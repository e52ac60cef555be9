// Lists that can be read page by page: the query and the answer's fields. Without `limit` a list is
// answered whole (spec: the lists' shapes).
import { z } from 'zod';
import { LIST_LIMIT } from './limits.ts';
import { numberInQuery } from './number-in-query.ts';

const limit = numberInQuery({
  min: 1,
  max: LIST_LIMIT.max,
  description: 'Longest page. Without `limit` and `after` the list is answered whole, unless its route says otherwise.',
});
const cursor = z.string().min(1).max(200).describe('The `nextCursor` of the page before.');

export const pageQuery = z.object({ limit: limit.optional(), after: cursor.optional() });
export type PageQuery = z.output<typeof pageQuery>;

/** Fields beside the list itself; only in the answer to a query with `limit` or `after`. */
export const pageFields = {
  nextCursor: z
    .string()
    .nullable()
    .optional()
    .describe(
      'Give it as `after` for the next page; null on the last one. Only in the answer to a query with `limit` or `after`.',
    ),
  hasMore: z
    .boolean()
    .optional()
    .describe('Whether there is a next page. Only in the answer to a query with `limit` or `after`.'),
};
