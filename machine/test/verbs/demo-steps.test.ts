import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exampleSandbox } from '@berth/contract/route/examples.ts';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { Progress } from '../../src/output/progress.ts';
import { demoSteps } from '../../src/verbs/demo-steps.ts';
import type { PublicApi } from '../../src/verbs/public-api.ts';

const sandbox = (status: Sandbox['status']): Sandbox => ({ ...exampleSandbox, status }) as Sandbox;

for (const during of ['the create', 'a command']) {
  test(`a demo that is interrupted during ${during} destroys its sandbox`, async () => {
    const interruption = new AbortController();
    const destroyed: string[] = [];
    const api = {
      firstOrgId: async () => 'org_a',
      firstProjectId: async () => 'prj_a',
      createSandbox: async () => {
        if (during === 'the create') interruption.abort(new Error('interrupted'));
        return sandbox(during === 'the create' ? 'provisioning' : 'running');
      },
      getSandbox: async () => sandbox('provisioning'),
      exec: async () => {
        interruption.abort(new Error('interrupted'));
        throw interruption.signal.reason;
      },
      destroySandbox: async (id: string, signal: AbortSignal) => {
        signal.throwIfAborted();
        destroyed.push(id);
        return sandbox('deleted');
      },
    } as unknown as PublicApi;
    const results = await demoSteps(api, new Progress(), interruption.signal);
    assert.deepEqual(destroyed, [exampleSandbox.id]);
    assert.ok(results.some(({ fault }) => fault !== null));
    assert.deepEqual([results.at(-1)?.name, results.at(-1)?.fault], ['destroy the sandbox', null]);
  });
}
