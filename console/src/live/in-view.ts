// Work that stops while nobody looks at the page.

/** Runs the work while the page is visible, again after each absence, until it ends by itself. */
export async function whileInView(signal: AbortSignal, work: (inView: AbortSignal) => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await untilVisible(signal);
    const inView = whileVisible(signal);
    await work(inView);
    if (!inView.aborted) return;
  }
}

async function untilVisible(signal: AbortSignal): Promise<void> {
  if (!document.hidden || signal.aborted) return;
  await new Promise<void>((resolve) => {
    const ended = new AbortController();
    const check = (): void => {
      if (document.hidden && !signal.aborted) return;
      ended.abort();
      resolve();
    };
    document.addEventListener('visibilitychange', check, { signal: ended.signal });
    signal.addEventListener('abort', check, { signal: ended.signal });
  });
}

/** Aborts when the page is hidden: browsers slow its timers down, and nobody looks at it. */
function whileVisible(signal: AbortSignal): AbortSignal {
  const ended = new AbortController();
  const end = (): void => {
    if (document.hidden || signal.aborted) ended.abort();
  };
  document.addEventListener('visibilitychange', end, { signal: ended.signal });
  signal.addEventListener('abort', end, { signal: ended.signal });
  end();
  return ended.signal;
}
