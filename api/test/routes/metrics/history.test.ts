// History of metrics over HTTP with a scripted host.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { ExecRefusal } from '../../world/guests/exec-refusal.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';

const AT = Date.UTC(2026, 0, 1);
const POINT = {
  atUnixMs: AT,
  cpuUsedPercent: 12.5,
  residentMib: 300,
  unsharedMib: 60,
  diskUsedMib: 20,
  networkInPerSecond: 100,
  networkOutPerSecond: 50,
};
const GAP = {
  atUnixMs: AT + 10_000,
  cpuUsedPercent: null,
  residentMib: null,
  unsharedMib: null,
  diskUsedMib: null,
  networkInPerSecond: null,
  networkOutPerSecond: null,
};

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());
beforeEach(() => {
  api.front.metricsHistory = () => ({ stepSeconds: 10, points: [POINT, GAP] });
});

const history = (id: string, query = ''): Promise<Answer> =>
  api.call('GET', `/v1/sandboxes/${id}/metrics/history${query}`);

test('the history has the host’s figures with units in the names, and gaps as nulls', async () => {
  const { id } = await api.makeSandbox('ready');
  const { body } = await history(id);
  const [point, gap] = body.history.points;
  assert.equal(body.history.stepSeconds, 10);
  assert.deepEqual(point, {
    at: '2026-01-01T00:00:00.000Z',
    cpuUsedPercent: 12.5,
    residentMemoryMib: 300,
    unsharedMemoryMib: 60,
    diskUsedMib: 20,
    receivedBytesPerSecond: 100,
    sentBytesPerSecond: 50,
  });
  const { at, ...figures } = gap;
  assert.deepEqual([at, new Set(Object.values(figures))], ['2026-01-01T00:00:10.000Z', new Set([null])]);
});

test('the window is an hour by default, and at most a day', async () => {
  const { id } = await api.makeSandbox('ready');
  const windows: (string | null)[] = [];
  api.front.metricsHistory = (_id, query) => {
    windows.push(query.get('windowSeconds'));
    return { stepSeconds: 60, points: [] };
  };
  await history(id);
  await history(id, '?windowSeconds=86400');
  assert.deepEqual(windows, ['3600', '86400']);
  for (const wrong of ['9', '86401', '1e3', '-60', '']) {
    const refused = await history(id, `?windowSeconds=${wrong}`);
    assert.deepEqual([refused.status, refused.body.error.code], [400, 'invalid_request'], wrong);
    assert.match(refused.body.error.message, /windowSeconds.*from 10 to 86400/);
  }
  assert.equal(windows.length, 2);
});

test('a read of a sleeping sandbox returns its history, wakes nothing and is no use', async () => {
  const { id } = await api.makeSandbox('stopped', { wakes_from: 'snapshot' });
  await api.db.updateTable('project').set({ wake_on_use: true }).where('id', '=', api.projectId).execute();
  const row = () => api.db.selectFrom('sandbox').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
  const before = await row();
  const answer = await history(id);
  assert.deepEqual([answer.status, answer.body.history.points.length], [200, 2]);
  assert.deepEqual([await row(), api.steps], [before, []]);
});

test('a host of an earlier release is 409 and named; a lost VM or host is 503', async () => {
  const { id } = await api.makeSandbox('ready');
  for (const [hostCode, status, code] of [
    ['route_not_found', 409, 'metrics_history_unsupported'],
    ['vm_not_found', 503, 'sandbox_unreachable'],
    ['unauthorized', 503, 'host_unavailable'],
  ] as const) {
    api.front.metricsHistory = () => {
      throw new ExecRefusal(hostCode, 'no');
    };
    const answer = await history(id);
    assert.deepEqual([answer.status, answer.body.error.code], [status, code]);
  }
  api.front.metricsHistory = () => ({ stepSeconds: 10, points: [{ ...POINT, residentMib: -1 }] });
  assert.equal((await history(id)).body.error.code, 'host_unavailable');
});

test('a sandbox that failed before it had a host is 409', async () => {
  const { id } = await api.makeSandbox('failed', { host_id: null });
  const answer = await history(id);
  assert.deepEqual([answer.status, answer.body.error.code], [409, 'sandbox_state_conflict']);
  assert.match(answer.body.error.message, /failed and has no VM/);
});
