import { useCallback, useEffect, useRef, useState, type RefObject } from 'react';

/** A region that is as near to its end shows it. */
const AT_END_PX = 48;

type Region = RefObject<HTMLElement | null>;

/**
 * Keeps the end of a scrolling region in view while it is. Returns the region, which has one child
 * that grows; the number of entries since its end was in view; and a jump to the end.
 */
export function useFollowEnd(entries: number): [Region, number, () => void] {
  const region = useRef<HTMLElement>(null);
  const atEnd = useRef(true);
  const [seen, setSeen] = useState(entries);
  const toEnd = useCallback(() => region.current?.scrollTo({ top: region.current.scrollHeight }), []);
  useEffect(() => {
    const { current: element } = region;
    if (element === null) return undefined;
    const look = (): void => {
      atEnd.current = element.scrollHeight - element.clientHeight - element.scrollTop < AT_END_PX;
      if (atEnd.current) setSeen(entries);
    };
    const grown = new ResizeObserver(() => {
      if (atEnd.current) toEnd();
      look();
    });
    for (const each of [element, ...element.children]) grown.observe(each);
    element.addEventListener('scroll', look, { passive: true });
    return () => {
      grown.disconnect();
      element.removeEventListener('scroll', look);
    };
  }, [entries, toEnd]);
  return [region, Math.max(0, entries - seen), toEnd];
}
