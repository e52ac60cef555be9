// The model gateway in the life of a VM: when it listens, when it forgets the access, and the URL
// that agents get.
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { BRIDGE_VERSION } from '@berth/protocol/agent-errors.ts';
import { AgentBridge } from '../../../src/guest/agent-bridge.ts';
import { GuestRefusal, type GuestClient } from '../../../src/guest/client.ts';
import { startAgent } from '../../../src/vm/lifecycle/agents.ts';
import type { ModelGate, VmModels } from '../../../src/vm/owned/owned-vm.ts';
import { accessTo } from '../../model-gateway/model-world.ts';
import { LifecycleFixture, SMALL, vmIdOf } from './lifecycle-fixture.ts';

const id = vmIdOf('a');

describe('the model gateway of a VM', () => {
  let host: LifecycleFixture;
  let done: string[];
  beforeEach(async () => {
    done = [];
    host = await LifecycleFixture.start();
    host.models = {
      serve: async (vmId) => void done.push(`serve ${vmId === id}`),
      setAccess: async (_vmId, { asOfMs }) => void done.push(`access ${asOfMs}`),
      forget: async (vmId) => void done.push(`forget ${vmId === id}`),
    } satisfies ModelGate;
    await host.restart();
    await host.lifecycle.create(id, { epoch: 1, spec: SMALL });
  });
  afterEach(() => host.stop());

  function models(): VmModels {
    const { vm } = host.lifecycle.running(id);
    assert.ok(vm.models);
    return vm.models;
  }
  const access = (asOfMs: number) => ({ ...accessTo('http://127.0.0.1:1'), asOfMs, version: `v${asOfMs}` });

  it('does nothing for a VM whose agents do not use it', async () => {
    await host.restart();
    await host.lifecycle.sleep(id, { epoch: 2 });
    await host.lifecycle.wake(id, { epoch: 3, spec: SMALL });
    await host.lifecycle.destroy(id, 4);
    assert.deepEqual(done, []);
  });

  it('listens from the first access on, and ignores an older one', async () => {
    await models().setAccess(access(5));
    await models().setAccess(access(4));
    await models().setAccess(access(5));
    assert.deepEqual(done, ['serve true', 'access 5', 'access 5']);
  });

  it('listens again under the next daemon and after a wake, before any access', async () => {
    await models().setAccess(access(5));
    done.length = 0;
    await host.restart();
    assert.deepEqual(done, ['forget true', 'serve true']);
    await models().setAccess(access(1));
    await host.lifecycle.sleep(id, { epoch: 2 });
    await host.lifecycle.wake(id, { epoch: 3, spec: SMALL });
    assert.deepEqual(done.slice(2), ['access 1', 'forget true', 'serve true']);
  });

  it('is reported with the version of the access in force, and with none after a wake or a restart', async () => {
    const version = () => host.lifecycle.list().find((vm) => vm.id === id)?.modelVersion;
    assert.equal(version(), undefined);
    await models().setAccess(access(5));
    assert.equal(version(), 'v5');
    const gate = host.models as ModelGate;
    gate.setAccess = () => Promise.reject(new Error('no room'));
    await assert.rejects(models().setAccess(access(6)));
    assert.equal(version(), 'v5', 'a failed change is not in force');
    await host.restart();
    assert.equal(version(), null);
    gate.setAccess = () => Promise.resolve();
    await models().setAccess(access(6));
    await host.lifecycle.sleep(id, { epoch: 2 });
    assert.equal(version(), undefined);
    assert.equal((await host.lifecycle.wake(id, { epoch: 3, spec: SMALL })).modelVersion, null);
  });

  it('forgets the access when the VM dies or is destroyed', async () => {
    await models().setAccess(access(5));
    await host.machine.kill(id, 'killed');
    await host.becomes(id, 'dead');
    assert.deepEqual(done.slice(2), ['forget true']);
    await host.lifecycle.wake(id, { epoch: 2, spec: SMALL });
    await host.lifecycle.destroy(id, 3);
    assert.deepEqual(done.slice(3), ['serve true', 'forget true']);
  });

  it('gives agents a URL with the path of their provider, and none to other agents', async () => {
    assert.match(await models().urlFor('agent_one'), /^http:\/\/127\.0\.0\.2:\d+\/openai$/);
    assert.match(await models().urlFor('agent_two'), /\/anthropic$/);
    await assert.rejects(models().urlFor('agent_three'), { code: 'agent_unsupported' });
    await assert.rejects(models().urlFor('constructor'), { code: 'agent_unsupported' });
    assert.deepEqual(done, ['serve true']);
  });

  it('is the address that a session with a gateway starts with', async () => {
    const bridge = new AgentBridge({ scripted: true, bridgeVersion: BRIDGE_VERSION });
    const urls: unknown[] = [];
    const stream = async (_call: unknown, { body }: { body: { gatewayUrl: unknown } }) => {
      urls.push(body.gatewayUrl);
      return Readable.from([]);
    };
    const guest = { stream } as unknown as GuestClient;
    const order = { sessionId: 'ags_x', agent: 'agent_two', mode: 'create', approvals: 'ask' } as const;
    const start = (gateway: boolean, given: VmModels | null) =>
      startAgent(bridge, { guest, models: given }, { ...order, gateway }, new AbortController().signal);
    await start(true, models());
    await start(false, models());
    assert.deepEqual(urls, [await models().urlFor('agent_two'), null]);
    await assert.rejects(start(true, null), { code: 'agent_unsupported' });
  });

  it('is refused with a terminal by a guest of an earlier release', async () => {
    const bridge = new AgentBridge({ scripted: true, bridgeVersion: BRIDGE_VERSION });
    const stream = () => Promise.reject(new GuestRefusal(400, 'body.surface is unknown'));
    const guest = { stream } as unknown as GuestClient;
    const order = { sessionId: 'ags_x', agent: 'agent_two', mode: 'create', approvals: 'ask', gateway: false } as const;
    const start = (surface: { surface?: 'terminal' }) =>
      startAgent(bridge, { guest, models: null }, { ...order, ...surface }, new AbortController().signal);
    await assert.rejects(start({ surface: 'terminal' }), { code: 'agent_unsupported' });
    await assert.rejects(start({}), { status: 400 });
  });
});
