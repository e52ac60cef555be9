// Reads lists, whole or by page, ordered by an instant and then a tie-breaker. Both run in the same
// direction, so one index serves the order and the cursor. SQL only; rules/page.ts makes cursors.
import { sql, type SelectQueryBuilder, type StringReference } from 'kysely';
import type { PageRequest, Slice } from '../../rules/page.ts';

interface ListOrder<DB, TB extends keyof DB> {
  /** A timestamptz column. */
  at: StringReference<DB, TB>;
  /** A column unique among rows of one instant. */
  tie: StringReference<DB, TB>;
  direction: 'asc' | 'desc';
}

/** Runs the query in order, whole (`page` null) or a page of it, in a single statement. */
export async function selectSlice<DB, TB extends keyof DB, Row>(
  query: SelectQueryBuilder<DB, TB, Row>,
  order: ListOrder<DB, TB>,
  page: PageRequest | null,
): Promise<Slice<Row>> {
  const [at, tie] = [sql.ref<Date>(order.at), sql.ref<string>(order.tie)];
  const ordered = query.orderBy(at, order.direction).orderBy(tie, order.direction);
  if (page === null) return { rows: await ordered.execute(), next: null };

  const { after, limit } = page;
  const beyond = order.direction === 'asc' ? sql`>` : sql`<`;
  const rest =
    after === null
      ? ordered
      : ordered.where(
          sql<boolean>`
            (${at}, ${tie}) ${beyond}
            (timestamptz 'epoch' + ${after.atMicroseconds}::bigint * interval '1 microsecond', ${after.tie})`,
        );
  // extract() is exact here: it returns a numeric. An extra row shows whether more follow.
  const found = (await rest
    .select([
      sql<string>`(extract(epoch from ${at}) * 1000000)::bigint`.as('place_at'),
      sql<string>`${tie}::text`.as('place_tie'),
    ])
    .limit(limit + 1)
    .execute()) as (Row & { place_at: string; place_tie: string })[];
  const last = found.length > limit ? found[limit - 1] : undefined;
  return {
    rows: found.slice(0, limit).map(({ place_at: _at, place_tie: _tie, ...row }) => row as Row),
    next: last === undefined ? null : { atMicroseconds: Number(last.place_at), tie: last.place_tie },
  };
}
