// A short run of the document-driven fuzzer on the driver without VMs, and proof that it detects
// faults. Longer runs are started by hand.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import fc from 'fast-check';
import { committedDocument, readOperations } from './document.ts';
import type { ApiFuzzReport } from './report.ts';
import { Known } from './known.ts';
import { ready, requests } from './request.ts';
import { runApiFuzz } from './run.ts';
import { fuzzApi } from './world.ts';

const SEED = '1';
const never = new AbortController().signal;

test('requests made from openapi.json get only documented statuses and schemas and no 500', async () => {
  const runs = 5 * operations.length;
  const report = await fuzzApi('fake', { seed: SEED, runs, clients: 3, say: console.log, signal: never });
  console.log(report.lastLine(SEED));
  assert.deepEqual(report.findings, []);
  assert.ok(report.requests >= runs);
  const { length } = report.neverSucceeded();
  assert.ok(length < operations.length / 2, `${length} operations were never answered with a success`);
});

const operations = readOperations(committedDocument());

test('most requests are valid, and every operation gets some that are not', () => {
  const known = new Known();
  known.learn({ orgs: [{ id: 'org_1' }], sandboxes: [{ id: 'sbx_1', projectId: 'prj_1' }] });
  const sent = fc
    .sample(requests(operations), { seed: 1, numRuns: 1_500 })
    .map((planned) => ({ planned, request: ready(planned, known, { apiKey: 'key' }) }));
  assert.ok(sent.filter(({ request }) => request.fits).length > sent.length / 2);
  for (const { id, body } of operations) {
    const its = sent.filter(({ planned }) => planned.operation.id === id);
    assert.ok(its.length > 0, id);
    if (body !== null)
      assert.ok(its.some(({ request }) => !request.fits) && its.some(({ request }) => request.fits), id);
  }
  const about = sent.filter(({ request }) => request.target.startsWith('/v1/sandboxes/'));
  assert.ok(about.filter(({ request }) => request.target.startsWith('/v1/sandboxes/sbx_1')).length > about.length / 2);
});

/** Runs against a service with one fixed response. */
async function against(
  t: TestContext,
  answer: { status: number; type: string; text: string },
  options: { runs: number; document?: string },
): Promise<ApiFuzzReport> {
  const server = createServer((request, response) => {
    request
      .resume()
      .once('end', () => void response.writeHead(answer.status, { 'content-type': answer.type }).end(answer.text));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const target = { url: `http://127.0.0.1:${port}`, tokens: { apiKey: 'key' }, tidy: () => Promise.resolve() };
  return await runApiFuzz({ seed: '1', clients: 1, target, say: () => undefined, signal: never, ...options });
}

const error = (code: string): string => JSON.stringify({ error: { code, message: 'no' } });
for (const [what, status, type, text, kind] of [
  ['an answer of 500', 500, 'application/json', error('internal'), 'fault'],
  ['a status that the document does not have', 418, 'application/json', error('teapot'), 'undocumented'],
  ['an error with a code that is not among those of its status', 404, 'application/json', error('lost'), 'schema'],
  ['an error without the envelope', 401, 'application/json', '{"message":"no"}', 'schema'],
  ['an answer that is no JSON', 401, 'text/html', '<p>no</p>', 'schema'],
] as const) {
  test(`${what} is found`, async (t) => {
    const report = await against(t, { status, type, text }, { runs: 40 });
    // All operations but the health check, which has fewer statuses.
    assert.ok(report.findings.filter(({ finding }) => finding === kind).length > 30);
    assert.equal(report.clean, false);
    assert.match(
      report.lastLine('1'),
      /^fuzz:api: seed 1: \d+ requests to \d+ operations in \d+ s \(0 of them with a success\); answers of 500: \d+,/,
    );
  });
}

test('an accepted body that the document forbids is found, and so is an undocumented field', async (t) => {
  const exec = { exitCode: 0, stdout: '', stderr: '', truncated: false, timedOut: false };
  const operation = operations.find(({ id }) => id === 'execInSandbox');
  assert.ok(operation !== undefined);
  const only = JSON.stringify({
    ...(JSON.parse(committedDocument()) as object),
    paths: {
      [operation.path.slice('/v1'.length)]: (JSON.parse(committedDocument()) as { paths: Record<string, object> })
        .paths[operation.path.slice(3)],
    },
  });
  for (const [answer, kind] of [
    [exec, 'taken'],
    [{ ...exec, more: 1 }, 'schema'],
  ] as const) {
    const text = JSON.stringify(answer);
    const report = await against(t, { status: 200, type: 'application/json', text }, { runs: 60, document: only });
    assert.ok(report.findings.some(({ finding }) => finding === kind));
  }
});
