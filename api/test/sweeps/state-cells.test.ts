// Every cell of (status × action) matches the contract's table. Called without HTTP.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ERRORS } from '@berth/contract/route/errors.ts';
import {
  REFUSAL_CODES,
  SANDBOX_ACTION_RULES,
  SANDBOX_ACTIONS,
  SANDBOX_STATES,
  sandboxStatus,
  statusesAllowing,
  type SandboxAction,
  type SandboxStatus,
} from '@berth/contract/sandboxes/state.ts';
import type { NewSandbox } from '../../src/store/database/schema.ts';
import { startApi, type Answer, type TestApi } from '../world/api.ts';
import { idleMetrics } from '../world/host-stand-in.ts';

let api: TestApi;
/** Commands and reads that reached the host. */
let reached: string[] = [];
before(async () => {
  api = await startApi({ durable: false });
  api.front.exec = ({ command }) => {
    reached.push(command);
    return Promise.resolve({ exitCode: 0, stdout: '', stderr: '', truncated: false, timedOut: false });
  };
  api.front.stream = (id) => {
    reached.push(id);
    return () => undefined;
  };
  const { sshHostKey } = api.front;
  api.front.sshHostKey = (id) => {
    reached.push(id);
    return sshHostKey(id);
  };
  const files = api.front.files;
  api.front.files = (call) => {
    reached.push(call.vmId);
    return files(call);
  };
  api.agents.before = ({ vmId }) => void reached.push(vmId);
  api.front.metrics = (id) => {
    reached.push(id);
    return idleMetrics();
  };
  const { metricsHistory } = api.front;
  api.front.metricsHistory = (id, target) => {
    reached.push(id);
    return metricsHistory(id, target);
  };
});
after(() => api.close());

const post = (id: string, verb: string, body?: object): Promise<Answer> =>
  api.callDirectly('POST', `/v1/sandboxes/${id}/${verb}`, {
    headers: { prefer: 'respond-async' },
    ...(body === undefined ? {} : { body }),
  });

const CALLS: { readonly [action in SandboxAction]: (id: string) => Promise<Answer> } = {
  exec: (id) => post(id, 'exec', { command: id }),
  connect: (id) => api.callDirectly('GET', `/v1/sandboxes/${id}/tunnel`),
  ssh_access: (id) => api.callDirectly('GET', `/v1/sandboxes/${id}/ssh`),
  files_read: (id) => api.callDirectly('GET', `/v1/sandboxes/${id}/file?path=a`),
  files_write: (id) => api.callDirectly('PUT', `/v1/sandboxes/${id}/file`, { body: { path: 'a', content: '' } }),
  sleep: (id) => post(id, 'sleep'),
  wake: (id) => post(id, 'wake'),
  resize: (id) => post(id, 'resize', { memoryGb: 2 }),
  renew: (id) => post(id, 'renew'),
  metrics_live: (id) => api.callDirectly('GET', `/v1/sandboxes/${id}/metrics/live`),
  metrics_history: (id) => api.callDirectly('GET', `/v1/sandboxes/${id}/metrics/history`),
  metrics_sample: (id) => post(id, 'metrics/sample'),
  preview_link: (id) => post(id, 'previews', { port: 3_000, audience: 'public' }),
  file_link: (id) => post(id, 'files/links', { path: 'a', action: 'read' }),
  agent_session: (id) => post(id, 'agent-sessions'),
  destroy: (id) => post(id, 'destroy'),
};

/** A failed sandbox with a remaining disk, for wake and resize; an ephemeral one for a renewal. */
function fixture(status: SandboxStatus, action: SandboxAction): Partial<NewSandbox> {
  return {
    ...(status === 'failed' ? { wakes_from: 'disk', status_reason_code: 'guest_panic' } : {}),
    ...(action === 'renew'
      ? { mode: 'ephemeral', ttl_seconds: 60, expires_at: new Date(Date.now() + 60_000), wakes_from: null }
      : {}),
  };
}

/** Effects of a `do`: status, step and increase of the epoch. */
const CARRIED_OUT: {
  readonly [action in SandboxAction]: (from: SandboxStatus) => { to: SandboxStatus; step?: string };
} = {
  exec: (from) => ({ to: from }),
  connect: (from) => ({ to: from }),
  ssh_access: (from) => ({ to: from }),
  files_read: (from) => ({ to: from }),
  files_write: (from) => ({ to: from }),
  sleep: () => ({ to: 'sleeping', step: 'sleep' }),
  wake: () => ({ to: 'waking', step: 'wake' }),
  resize: (from) => (SANDBOX_STATES[from].awake ? { to: from, step: 'resize' } : { to: from }),
  renew: (from) => ({ to: from }),
  metrics_live: (from) => ({ to: from }),
  metrics_history: (from) => ({ to: from }),
  metrics_sample: (from) => ({ to: from }),
  preview_link: (from) => ({ to: from }),
  file_link: (from) => ({ to: from }),
  agent_session: (from) => ({ to: from }),
  destroy: () => ({ to: 'destroying', step: 'destroy' }),
};
/** Success statuses other than 200. */
const SUCCESSES: { readonly [action in SandboxAction]?: number } = {
  connect: 101,
  preview_link: 201,
  file_link: 201,
  agent_session: 201,
};
const REACHES_THE_HOST: ReadonlySet<SandboxAction> = new Set<SandboxAction>([
  'exec',
  'connect',
  'ssh_access',
  'files_read',
  'files_write',
  'metrics_live',
  'metrics_history',
  'metrics_sample',
  'agent_session',
]);

for (const status of sandboxStatus.options) {
  for (const action of SANDBOX_ACTIONS) {
    const verdict = SANDBOX_ACTION_RULES[action][status];
    test(`${action} of a sandbox that is ${status}: ${verdict}`, async () => {
      const sandbox = await api.makeSandbox(status, fixture(status, action));
      reached = [];
      api.steps.length = 0;
      const answer = await CALLS[action](sandbox.id);
      const after = await api.db
        .selectFrom('sandbox')
        .selectAll()
        .where('id', '=', sandbox.id)
        .executeTakeFirstOrThrow();
      if (verdict === 'refuse') {
        assert.equal(answer.body.error?.code, REFUSAL_CODES[action], JSON.stringify(answer.body));
        assert.equal(answer.status, ERRORS[REFUSAL_CODES[action]].status);
        assert.match(answer.body.error.message, new RegExp(`the sandbox is ${status}\\b`));
        const isOver = status === 'destroying' || status === 'deleted';
        for (const remedy of isOver ? ['Create another sandbox'] : statusesAllowing(action))
          assert.match(answer.body.error.message, new RegExp(`\\b${remedy}\\b`));
        assert.deepEqual([reached, api.steps, after], [[], [], sandbox]);
        return;
      }
      assert.equal(answer.status, SUCCESSES[action] ?? 200, JSON.stringify(answer.body));
      if (verdict === 'done') {
        assert.equal(answer.body.sandbox.status, status);
        assert.deepEqual([api.steps, after], [[], sandbox]);
        return;
      }
      const { to, step } = CARRIED_OUT[action](status);
      assert.equal(after.status, to);
      const epoch = sandbox.epoch + (step === undefined ? 0 : 1);
      assert.equal(after.epoch, epoch);
      assert.deepEqual(api.steps, step === undefined ? [] : [{ kind: step, step: { sandboxId: sandbox.id, epoch } }]);
      assert.deepEqual(reached, REACHES_THE_HOST.has(action) ? [sandbox.id] : []);
    });
  }

  test(`a sandbox that is ${status} can be read, and is ${status === 'deleted' ? 'not ' : ''}listed`, async () => {
    const sandbox = await api.makeSandbox(status);
    assert.equal((await api.call('GET', `/v1/sandboxes/${sandbox.id}`)).body.sandbox.status, status);
    const listed = (await api.call('GET', `/v1/orgs/${api.orgId}/sandboxes`)).body.sandboxes.some(
      ({ id }: { id: string }) => id === sandbox.id,
    );
    assert.equal(listed, status !== 'deleted');
  });
}

test('exactly running and ready are awake: the guest responds, and for ready set-up is done', () => {
  assert.deepEqual(
    sandboxStatus.options.filter((status) => SANDBOX_STATES[status].awake),
    ['running', 'ready'],
  );
});

test('a failed sandbox without remains cannot be woken or resized', async () => {
  const { id } = await api.makeSandbox('failed');
  const woken = await post(id, 'wake');
  assert.deepEqual([woken.status, woken.body.error.code], [400, 'wake_not_possible']);
  assert.match(woken.body.error.message, /is failed and has neither a snapshot nor a disk to wake from/);
  const resized = await post(id, 'resize', { memoryGb: 2 });
  assert.deepEqual([resized.status, resized.body.error.code], [409, 'sandbox_state_conflict']);
});

test('a sleep of an ephemeral sandbox destroys it', async () => {
  const { id } = await api.makeSandbox('ready', {
    mode: 'ephemeral',
    ttl_seconds: 60,
    expires_at: new Date(Date.now() + 60_000),
  });
  api.steps.length = 0;
  assert.equal((await post(id, 'sleep')).body.sandbox.status, 'destroying');
  assert.deepEqual(api.steps, [{ kind: 'destroy', step: { sandboxId: id, epoch: 2 } }]);
});
