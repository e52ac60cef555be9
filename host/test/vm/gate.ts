/** Holds its callers until `go` or the abort of their signal. */
export interface Gate {
  /** Resolves when the first caller waits. */
  begun: Promise<void>;
  wait: (signal?: AbortSignal) => Promise<void>;
  go: () => void;
}

export function gate(): Gate {
  const begun = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  return {
    begun: begun.promise,
    wait: (signal) => {
      signal?.addEventListener('abort', () => opened.resolve(), { once: true });
      if (signal?.aborted === true) opened.resolve();
      begun.resolve();
      return opened.promise;
    },
    go: opened.resolve,
  };
}
