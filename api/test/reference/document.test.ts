// The OpenAPI document as served.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { publishedDocument } from '@berth/contract/document/openapi.ts';
import { startApi, type TestApi } from '../world/api.ts';
import { SETTINGS } from '../world/settings.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

test("the document is served without a token and contains the service's address", async () => {
  const answer = await fetch(`${api.url}/v1/openapi.json`);
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get('content-type') ?? '', /^application\/json/);
  const document = (await answer.json()) as { servers: { url: string }[] };
  assert.deepEqual(document.servers, [{ url: `${SETTINGS.publicUrl}/v1` }]);
  assert.deepEqual(document, JSON.parse(JSON.stringify(publishedDocument(SETTINGS.publicUrl))));
});
