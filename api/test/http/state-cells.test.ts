// Every cell of (status x action): what each action does in each status is what the contract's table says.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  SANDBOX_ACTION_RULES,
  SANDBOX_ACTIONS,
  SANDBOX_STATES,
  sandboxStatus,
  statusesAllowing,
  type SandboxAction,
} from '@berth/contract/sandbox-state.ts';
import { startApi, type Answer, type TestApi } from '../api.ts';

let api: TestApi;
let execs: string[] = [];
before(async () => {
  api = await startApi({ durable: false });
  api.front.exec = ({ command }) => {
    execs.push(command);
    return Promise.resolve({ exitCode: 0, stdout: '', stderr: '', truncated: false, timedOut: false });
  };
});
after(() => api.close());

const CALLS: { readonly [action in SandboxAction]: (id: string) => Promise<Answer> } = {
  exec: (id) => api.call('POST', `/v1/sandboxes/${id}/exec`, { body: { command: id } }),
  destroy: (id) => api.call('POST', `/v1/sandboxes/${id}/destroy`, { headers: { prefer: 'respond-async' } }),
};

for (const status of sandboxStatus.options) {
  for (const action of SANDBOX_ACTIONS) {
    const verdict = SANDBOX_ACTION_RULES[action][status];
    test(`${action} of a sandbox that is ${status}: ${verdict}`, async () => {
      const sandbox = await api.makeSandbox(status);
      execs = [];
      api.steps.length = 0;
      const answer = await CALLS[action](sandbox.id);
      const after = await api.db.selectFrom('sandbox').selectAll().where('id', '=', sandbox.id).executeTakeFirstOrThrow();
      if (verdict === 'refuse') {
        assert.equal(answer.status, 409);
        assert.equal(answer.body.error.code, 'sandbox_state_conflict');
        assert.match(answer.body.error.message, new RegExp(`the sandbox is ${status}\\b`));
        for (const legal of statusesAllowing(action)) assert.match(answer.body.error.message, new RegExp(`\\b${legal}\\b`));
        assert.deepEqual([execs, api.steps, after], [[], [], sandbox]);
        return;
      }
      assert.equal(answer.status, 200);
      if (action === 'exec') {
        assert.deepEqual(execs, [sandbox.id]);
        assert.deepEqual(after, sandbox);
      } else if (verdict === 'done') {
        assert.equal(answer.body.sandbox.status, status);
        assert.deepEqual([api.steps, after], [[], sandbox]);
      } else {
        assert.equal(answer.body.sandbox.status, 'destroying');
        assert.deepEqual(api.steps, [{ kind: 'destroy', step: { sandboxId: sandbox.id, epoch: sandbox.epoch + 1 } }]);
      }
    });
  }

  test(`a sandbox that is ${status} can be fetched, and is ${status === 'deleted' ? 'not ' : ''}listed`, async () => {
    const sandbox = await api.makeSandbox(status);
    assert.equal((await api.call('GET', `/v1/sandboxes/${sandbox.id}`)).body.sandbox.status, status);
    const listed = (await api.call('GET', `/v1/orgs/${api.orgId}/sandboxes`)).body.sandboxes.some(
      ({ id }: { id: string }) => id === sandbox.id,
    );
    assert.equal(listed, status !== 'deleted');
  });
}

test('running means that the guest answers and ready that set-up is done too: both are awake, no other status is', () => {
  assert.deepEqual(
    sandboxStatus.options.filter((status) => SANDBOX_STATES[status].awake),
    ['running', 'ready'],
  );
});
