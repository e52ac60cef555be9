// Paths that respond without a bearer token are the contract's closed list, in the docs too. Covers
// everything that the server registered.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { OPEN_PATHS } from '@berth/contract/access/open-paths.ts';
import { mcpEndpoint } from '@berth/contract/mcp/endpoint.ts';
import { ROUTES } from '@berth/contract/routes.ts';
import { startApi, type TestApi } from '../world/api.ts';
import { noteRegisteredRoutes } from './registered-routes.ts';

const registered = noteRegisteredRoutes();
let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const inOrder = (names: Iterable<string>): string[] => [...new Set(names)].toSorted();
/** `GET` includes `HEAD`, which is served on every such path. */
const withHead = (names: readonly string[]): string[] =>
  names.flatMap((name) => [name, ...(name.startsWith('GET ') ? [`HEAD ${name.slice(4)}`] : [])]);
const open = OPEN_PATHS.map(({ method, path }) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`);

test("the server registers exactly the contract's routes, the MCP endpoint and the open paths", () => {
  const routes = [...ROUTES, mcpEndpoint].map(
    ({ method, path }) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
  );
  assert.deepEqual(
    inOrder(registered.map(({ method, path }) => `${method} ${path}`)),
    inOrder(withHead([...routes, ...open])),
  );
});

test('paths that respond without a bearer token are exactly the open paths', async () => {
  const answered: string[] = [];
  for (const { method, path } of registered) {
    const url = api.url + path.replaceAll(/:\w+|\*$/g, 'x');
    const { status, headers } = await fetch(url, { method, redirect: 'manual' });
    // A refusal in the API's form; pages and OAuth endpoints have their own.
    const refused = status === 401 && headers.get('www-authenticate') === 'Bearer';
    if (!refused) answered.push(`${method} ${path}`);
  }
  assert.deepEqual(inOrder(answered), inOrder(withHead(open)));
});

test('an unregistered path is 404 without a token, however it is written', async () => {
  for (const path of [
    '/v1',
    '/v1/',
    '/v1/me/',
    '/v1//me',
    '/V1/me',
    '/v1/Me',
    '/auth',
    '/auth/',
    '/auth/x',
    '/sign-in/x',
    '/health/',
  ]) {
    const { status } = await fetch(api.url + path, { redirect: 'manual' });
    assert.equal(status, 404, path);
  }
});

test('docs/spec-gaps/open-paths.md lists exactly the open paths, each with its reason', () => {
  const document = readFileSync(join(import.meta.dirname, '../../../docs/spec-gaps/open-paths.md'), 'utf8');
  const listed = [...document.matchAll(/^- `([A-Z]+ \/\S*)`: (.+)$/gm)].map(([, name, why]) => `${name}: ${why}`);
  assert.deepEqual(
    listed,
    OPEN_PATHS.map(({ method, path, why }) => `${method} ${path}: ${why}`),
  );
});
