// Lists that are read in pages, as the records of all pages so far.
import { infiniteQueryOptions, keepPreviousData, type QueryKey } from '@tanstack/react-query';

/** Part of a request: the page after the cursor, or the first. */
interface PageRequest {
  after?: string;
}

type State = { state: { data: { pages: unknown[] } | undefined } };

/** Polls while one page is shown: a refetch reads every page. */
export const whileShort =
  (ms: number) =>
  ({ state: { data } }: State): number | false =>
    (data?.pages.length ?? 1) > 1 ? false : ms;

export const pagedQuery = <Page extends { nextCursor?: string | null }, T>(
  queryKey: QueryKey,
  read: (page: PageRequest, signal: AbortSignal) => Promise<Page>,
  recordsOf: (page: Page) => readonly T[],
) =>
  infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam, signal }) => read(pageParam === null ? {} : { after: pageParam }, signal),
    // The records of the previous filter stay until those of the next are here.
    placeholderData: keepPreviousData,
    initialPageParam: null as string | null,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    select: ({ pages }) => pages.flatMap(recordsOf),
  });
