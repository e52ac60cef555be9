// File calls and sleep: they record activity and wake a stopped sandbox if its project allows it.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { newId } from '../../../src/store/database/ids.ts';
import { insertProject } from '../../../src/store/orgs/projects.ts';
import { lockSandbox } from '../../../src/store/sandboxes/sandboxes.ts';
import type { SandboxRow } from '../../../src/store/database/schema.ts';
import { transitionSandbox } from '../../../src/services/sandboxes/transition.ts';
import { startApi, type Answer, type TestApi } from '../../world/api.ts';

const LONG_AGO = new Date(Date.now() - 3_600_000);

let api: TestApi;
let wakingProjectId: string;
/** File calls that reached the VM. */
let reached: string[];
before(async () => {
  api = await startApi({ durable: false });
  wakingProjectId = newId('project');
  await insertProject(api.db, {
    id: wakingProjectId,
    org_id: api.orgId,
    name: 'wakes',
    use_case: 'internal',
    wake_on_use: true,
    created_by: api.userId,
  });
  const { files } = api.front;
  api.front.files = (call) => {
    reached.push(call.verb);
    return files(call);
  };
});
after(() => api.close());
beforeEach(() => {
  reached = [];
  api.steps.length = 0;
});

const CALLS: Readonly<Record<string, (id: string) => Promise<Answer>>> = {
  list: (id) => api.call('GET', `/v1/sandboxes/${id}/files`),
  snapshot: (id) => api.call('GET', `/v1/sandboxes/${id}/files/snapshot`),
  read: (id) => api.call('GET', `/v1/sandboxes/${id}/file?path=a`),
  write: (id) => api.call('PUT', `/v1/sandboxes/${id}/file`, { body: { path: 'a', content: 'x' } }),
};
const rowOf = (id: string): Promise<SandboxRow> =>
  api.db.selectFrom('sandbox').selectAll().where('id', '=', id).executeTakeFirstOrThrow();

/** Completes the sandbox's transition like its durable step. */
async function becomeReady(id: string): Promise<void> {
  await api.db.transaction().execute(async (trx) => {
    const before = await lockSandbox(trx, id);
    const actor = { kind: 'system', id: null, userId: null } as const;
    await transitionSandbox(trx, { sandboxId: id, epoch: before?.epoch ?? 0, to: 'ready', actor, wakesFrom: null });
  });
}

for (const [what, call] of Object.entries(CALLS)) {
  test(`a ${what} records activity`, async () => {
    const { id } = await api.makeSandbox('ready', { last_active_at: LONG_AGO });
    assert.equal((await call(id)).status, 200);
    assert.ok((await rowOf(id)).last_active_at > LONG_AGO);
  });

  test(`a ${what} of a stopped sandbox is 409, or wakes it if its project allows that`, async () => {
    const left = await api.makeSandbox('stopped', { wakes_from: 'snapshot' });
    const refused = await call(left.id);
    assert.deepEqual([refused.status, refused.body.error.code], [409, 'sandbox_state_conflict']);
    assert.deepEqual([api.steps, reached, await rowOf(left.id)], [[], [], left]);

    const { id } = await api.makeSandbox('stopped', { project_id: wakingProjectId, wakes_from: 'snapshot' });
    const watch = api.context.changes.watch(id);
    const answering = call(id);
    try {
      while ((await rowOf(id)).status !== 'waking') await watch.next(AbortSignal.timeout(20_000));
    } finally {
      watch.close();
    }
    assert.deepEqual([api.steps.map(({ kind }) => kind), reached], [['wake'], []]);
    await becomeReady(id);
    assert.equal((await answering).status, 200);
    assert.equal(reached.length, 1);
    const wake = await api.db
      .selectFrom('activity')
      .select('details')
      .where('sandbox_id', '=', id)
      .where('kind', '=', 'sandbox_wake_requested')
      .execute();
    assert.deepEqual(
      wake.map(({ details }) => (details as { wakeOnUse?: string }).wakeOnUse),
      [what === 'write' ? 'files_write' : 'files_read'],
    );
  });
}
