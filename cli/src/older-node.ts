// Polyfills for Node 20, which only the package supports.

if (!('withResolvers' in Promise)) {
  Object.assign(Promise, {
    withResolvers<T>(): PromiseWithResolvers<T> {
      const made = {} as PromiseWithResolvers<T>;
      made.promise = new Promise<T>((resolve, reject) => {
        made.resolve = resolve;
        made.reject = reject;
      });
      return made;
    },
  });
}

if (!('parse' in URL)) {
  Object.assign(URL, {
    parse: (url: string, base?: string): URL | null => (URL.canParse(url, base) ? new URL(url, base) : null),
  });
}
