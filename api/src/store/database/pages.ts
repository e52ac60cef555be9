// Reads lists, whole or by page, ordered by an instant and then a tie-breaker. Both run in the same
// direction, so one index serves the order and the cursor. SQL only; rules/page.ts makes cursors.
import { sql, type SelectQueryBuilder, type StringReference } from 'kysely';
import type { PageRequest, Place, Slice } from '../../rules/page.ts';

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
  if (page === null) return { rows: await inOrder(query, order).execute(), next: null };
  // An extra row shows whether more follow.
  const found = await selectPlaced(query, order, { after: page.after, limit: page.limit + 1 });
  return {
    rows: found.slice(0, page.limit).map(({ row }) => row),
    next: (found.length > page.limit ? found[page.limit - 1]?.place : undefined) ?? null,
  };
}

/** A page of the query, each row with its position. */
export async function selectPlaced<DB, TB extends keyof DB, Row>(
  query: SelectQueryBuilder<DB, TB, Row>,
  order: ListOrder<DB, TB>,
  { after, limit }: PageRequest,
): Promise<{ row: Row; place: Place }[]> {
  const [at, tie] = [sql.ref<Date>(order.at), sql.ref<string>(order.tie)];
  const ordered = inOrder(query, order);
  const beyond = order.direction === 'asc' ? sql`>` : sql`<`;
  const rest =
    after === null
      ? ordered
      : ordered.where(
          sql<boolean>`
            (${at}, ${tie}) ${beyond}
            (timestamptz 'epoch' + ${after.atMicroseconds}::bigint * interval '1 microsecond', ${after.tie})`,
        );
  // extract() is exact here: it returns a numeric.
  const found = (await rest
    .select([
      sql<string>`(extract(epoch from ${at}) * 1000000)::bigint`.as('place_at'),
      sql<string>`${tie}::text`.as('place_tie'),
    ])
    .limit(limit)
    .execute()) as (Row & { place_at: string; place_tie: string })[];
  return found.map(({ place_at, place_tie, ...row }) => ({
    row: row as Row,
    place: { atMicroseconds: Number(place_at), tie: place_tie },
  }));
}

function inOrder<DB, TB extends keyof DB, Row>(
  query: SelectQueryBuilder<DB, TB, Row>,
  { at, tie, direction }: ListOrder<DB, TB>,
): SelectQueryBuilder<DB, TB, Row> {
  return query.orderBy(sql.ref(at), direction).orderBy(sql.ref(tie), direction);
}
