// Runs several test files in this process, one after another. Each file is a suite named by its
// path, so that its hooks apply to its own tests only.
import { suite } from 'node:test';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

for (const file of (process.env['BERTH_TEST_FILES'] ?? '').split('\n')) {
  // Two imports at once could evaluate a shared module, and so declare tests, in the other's suite.
  const loaded = Promise.withResolvers<void>();
  void suite(file, async () => {
    try {
      await import(pathToFileURL(resolve(file)).href);
    } finally {
      loaded.resolve();
    }
  });
  await loaded.promise;
}
