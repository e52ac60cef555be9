// Lists that can be read page by page: the query and the answer's fields. Without `limit` a list is answered whole (spec: the lists' shapes).
import { z } from 'zod';
import { LIST_LIMIT } from './limits.ts';

/** `limit` as it stands in a query: digits. */
const limitText = z
  .string()
  .regex(/^\d{1,4}$/, `must be an integer from 1 to ${LIST_LIMIT.max}`)
  .transform(Number)
  .refine((value) => value >= 1 && value <= LIST_LIMIT.max, `must be an integer from 1 to ${LIST_LIMIT.max}`);

const cursor = z.string().min(1).max(200);

/** `after` is the `nextCursor` of the page before. */
export const pageQuery = z.object({ limit: limitText.optional(), after: cursor.optional() });
export type PageQuery = z.output<typeof pageQuery>;

/** Fields beside the list itself; only in the answer to a query with `limit` or `after`. */
export const pageFields = {
  nextCursor: z.string().nullable().optional(),
  hasMore: z.boolean().optional(),
};
