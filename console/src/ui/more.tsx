import { useCallback, useEffect, useState } from 'react';
import { en } from '../text/en.ts';
import { Button } from './button.tsx';
import css from './more.module.css';

interface MoreProps {
  query: {
    hasNextPage: boolean;
    isFetching: boolean;
    isFetchingNextPage: boolean;
    isError: boolean;
    fetchNextPage: () => Promise<unknown>;
  };
  /** Loads the next page by itself when the end of the list comes near. */
  inView?: boolean;
}

/** Button that loads the next page of a list, while there is one. */
export function More({ query, inView = false }: MoreProps) {
  const [isNear, setIsNear] = useState(false);
  const { hasNextPage, isFetching, isFetchingNextPage, isError, fetchNextPage } = query;
  const observe = useCallback((end: HTMLElement | null) => {
    if (end === null) return;
    const observer = new IntersectionObserver((entries) => setIsNear(entries.at(-1)?.isIntersecting === true), {
      rootMargin: '100% 0px',
    });
    observer.observe(end);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    // A fetch of the next page would cancel one of the list, and the other way round.
    if (isNear && hasNextPage && !isFetching && !isError) void fetchNextPage();
  }, [isNear, hasNextPage, isFetching, isError, fetchNextPage]);
  if (!hasNextPage) return null;
  return (
    <p ref={inView ? observe : undefined} className={css.more}>
      <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
        {en.states.more}
      </Button>
    </p>
  );
}
