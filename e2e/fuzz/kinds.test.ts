// The requests of a run follow from its seed, and can be sent.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from '../world/random.ts';
import type { FuzzRequest } from './core/kind.ts';
import type { PreviewEndpoint, PreviewRequest, PreviewEndpoints } from './core/preview-request.ts';
import { FUZZ_KINDS } from './kinds.ts';

function previewEndpoints(): PreviewEndpoints {
  const endpoint = (id: string): PreviewEndpoint => ({
    host: `3000-${id.repeat(24)}.localhost:1`,
    token: `bpt_${id}.x`,
    cookie: `bpc_${id}.x`,
  });
  const [app, asleep, gone] = [endpoint('b'), endpoint('c'), endpoint('d')];
  const silent = { ...app, host: app.host.replace('3000', '9') };
  return {
    previewHost: 'localhost:1',
    sandboxId: 'sbx_b',
    marker: 'w',
    app,
    spare: app,
    revoked: app,
    expired: app,
    team: app,
    silent,
    asleep,
    gone,
  };
}

const WORLD = {
  caller: { url: '', token: '', orgId: 'org_a', projectId: 'prj_a' },
  awake: ['sbx_a', 'sbx_b'],
  away: ['sbx_c'],
  previews: previewEndpoints(),
  sessions: ['ags_a', 'ags_b'],
  tokens: { apiKey: 'a', session: 'b', agentToken: 'c', readOnlyToken: 'd' },
};

/** Requests of each kind in its first turns, when every response is a success without content. */
async function requestsOf(seed: string): Promise<{ sent: FuzzRequest[]; previews: PreviewRequest[] }> {
  const sent: FuzzRequest[] = [];
  const previews: PreviewRequest[] = [];
  for (const { name, run } of FUZZ_KINDS) {
    for (let number = 0; number < 150; number += 1) {
      await run({
        name: `c1.${number}`,
        random: new Random(`${seed}/${name}/${number}`),
        world: WORLD,
        send: async (request) => {
          sent.push(request);
          return { status: 200, body: {} };
        },
        sendPreview: async (request) => {
          previews.push(request);
        },
        wrong: () => {},
      });
    }
  }
  return { sent, previews };
}

test('the same seed gives the same requests, another seed others', async () => {
  const first = await requestsOf('1');
  assert.deepEqual(await requestsOf('1'), first);
  assert.notDeepEqual(await requestsOf('2'), first);
});

test('every request can be sent: invalid header bytes are escaped', async () => {
  const { sent: requests, previews } = await requestsOf('1');
  for (const { target } of requests) assert.match(target, /^\/[\x21-\x7e]*$/);
  const routes = new Set(
    requests.map(({ method, target }) => `${method} ${target.split('?', 1)[0]?.split('/').slice(4).join('/')}`),
  );
  for (const route of [
    'GET files',
    'GET files/snapshot',
    'GET file',
    'PUT file',
    'POST exec',
    'POST previews',
    'GET previews',
  ])
    assert.ok(routes.has(route), route);
  const whats = new Set(previews.map(({ what }) => what));
  for (const what of [
    'app',
    'no listener',
    'revoked',
    'guest daemon',
    'service host',
    'WebSocket, app',
    'behind each other',
    'odd bytes',
    'changed bytes',
  ])
    assert.ok(whats.has(what), what);
});
