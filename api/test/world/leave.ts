// A caller that disconnects before the response.
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TestApi } from './api.ts';

/**
 * Posts to the path, and disconnects once `begun` resolves. Resolves when the API has noticed: it
 * hears of the caller by the same event of its response.
 */
export async function leaveDuring(api: TestApi, path: string, begun: () => Promise<void>): Promise<void> {
  const noticed = Promise.withResolvers<void>();
  const watch = ({ method, url }: IncomingMessage, response: ServerResponse): void => {
    if (method === 'POST' && url === path) response.once('close', noticed.resolve);
  };
  api.app.server.on('request', watch);
  const caller = new AbortController();
  const left = api.call('POST', path, { signal: caller.signal });
  await begun();
  caller.abort();
  await assert.rejects(left, { name: 'AbortError' });
  await noticed.promise;
  api.app.server.off('request', watch);
}
