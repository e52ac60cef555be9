// Refused attempts of guests in the activity feed, with a real database.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { EgressDenied } from '@berth/protocol/egress.ts';
import type { VmView } from '@berth/protocol/host.ts';
import { findFences } from '../../../src/store/sandboxes/lifecycle.ts';
import { EgressDenials } from '../../../src/workers/hosts/egress-denials.ts';
import { startApi, type TestApi } from '../../world/api.ts';
import { untilTrue } from '../../../../os/test/until.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: true });
});
after(() => api.close());

const replica = (): EgressDenials => new EgressDenials({ db: api.db } as never);

async function note(by: EgressDenials, id: string, denied: Partial<EgressDenied>, epoch?: number): Promise<void> {
  const [row] = [...(await findFences(api.db, [id])).values()];
  assert.ok(row !== undefined);
  const view = { id, egressDenied: { sinceUnixMs: 1, count: 1, destinations: [], ...denied } };
  await by.note([{ ...row, epoch: epoch ?? row.epoch }], new Map([[id, view as unknown as VmView]]));
}

async function entries(id: string): Promise<object[]> {
  const rows = api.db.selectFrom('activity').select('details').where('sandbox_id', '=', id);
  const noted = await rows.where('kind', '=', 'sandbox_egress_denied').orderBy('seq').execute();
  return noted.map(({ details }) => details);
}

async function aMinuteLater(id: string): Promise<void> {
  const { egress_denied_at: at } = await api.db
    .selectFrom('sandbox')
    .select('egress_denied_at')
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  const earlier = new Date((at?.getTime() ?? 0) - 60_000);
  await api.db.updateTable('sandbox').set({ egress_denied_at: earlier }).where('id', '=', id).execute();
}

test('refused attempts become one entry a minute, with their number and last destinations', async () => {
  const { id } = await api.makeSandbox('ready');
  const first = replica();
  await note(first, id, { count: 3, destinations: ['evil.test'] });
  const noted = [{ count: 3, destinations: ['evil.test'] }];
  assert.deepEqual(await entries(id), noted);
  // Within the minute neither this replica nor another one adds an entry.
  for (const by of [first, replica()]) await note(by, id, { count: 10 });
  assert.deepEqual(await entries(id), noted);
  await aMinuteLater(id);
  await note(replica(), id, { count: 10, destinations: ['9.9.9.9', 'evil.test'] });
  noted.push({ count: 7, destinations: ['9.9.9.9', 'evil.test'] });
  assert.deepEqual(await entries(id), noted);
  await aMinuteLater(id);
  await note(replica(), id, { count: 10 });
  assert.deepEqual(await entries(id), noted);
});

test('a count that started anew is noted whole', async () => {
  const { id } = await api.makeSandbox('ready');
  await note(replica(), id, { count: 3 });
  await aMinuteLater(id);
  await note(replica(), id, { sinceUnixMs: 2, count: 5 });
  assert.deepEqual(
    (await entries(id)).map((entry) => (entry as { count: number }).count),
    [3, 5],
  );
});

test('ten replicas at once add one entry, and a report under an older epoch adds none', async () => {
  const { id } = await api.makeSandbox('ready');
  await note(replica(), id, {}, 99);
  assert.deepEqual(await entries(id), []);
  await Promise.all(Array.from({ length: 10 }, () => note(replica(), id, { count: 4 })));
  assert.deepEqual(await entries(id), [{ count: 4, destinations: [] }]);
});

test('attempts that a host reports appear in the activity feed', async () => {
  const made = await api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, {
    body: { agent: 'agent_one', projectId: api.projectId, egress: { mode: 'none' } },
  });
  const { id } = made.body.sandbox;
  await untilTrue('the VM runs', () => api.host.vm(id)?.status === 'running');
  api.host.setVm(id, { egressDenied: { sinceUnixMs: 1, count: 2, destinations: ['evil.test'] } });
  const feed = async (): Promise<{ kind: string; details: object }[]> =>
    (await api.call('GET', `/v1/orgs/${api.orgId}/activity?sandboxId=${id}`)).body.activity;
  await untilTrue('the feed has it', async () => (await feed()).some(({ kind }) => kind === 'sandbox_egress_denied'));
  const entry = (await feed()).find(({ kind }) => kind === 'sandbox_egress_denied');
  assert.deepEqual(entry?.details, { count: 2, destinations: ['evil.test'] });
});
