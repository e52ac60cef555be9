// Rows of a long list that are near the viewport. A list of thousands of rows stays fast.
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useLayoutEffect, useRef, useState, type RefObject } from 'react';

/** A shorter list is shown whole, so that the browser's own search finds all of it. */
const SHORT = 200;
const OVERSCAN = 15;

interface LongList<E extends Element> {
  list: RefObject<E | null>;
  /** Indexes of the rows to show. */
  shown: readonly number[];
  /** Height in pixels of the rows left out. */
  before: number;
  after: number;
  /** Measures a row, which has `data-index`. */
  measure: (row: Element | null) => void;
}

/** @param rowHeight in pixels, until a row is measured */
export function useLongList<E extends HTMLElement>(count: number, rowHeight: number): LongList<E> {
  const list = useRef<E>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => setTop((list.current?.getBoundingClientRect().top ?? 0) + window.scrollY), [count]);
  const isLong = count > SHORT;
  // oxlint-disable-next-line react/incompatible-library -- the console is built without the compiler
  const virtualizer = useWindowVirtualizer<Element>({
    count,
    enabled: isLong,
    estimateSize: () => rowHeight,
    overscan: OVERSCAN,
    scrollMargin: top,
  });
  if (!isLong) return { list, shown: [...Array(count).keys()], before: 0, after: 0, measure: () => undefined };
  const items = virtualizer.getVirtualItems();
  return {
    list,
    shown: items.map(({ index }) => index),
    before: (items[0]?.start ?? top) - top,
    after: virtualizer.getTotalSize() - ((items.at(-1)?.end ?? top) - top),
    measure: virtualizer.measureElement,
  };
}
