// A new pass-through call takes three places: its definition, its handler in the guest daemon, and
// its use. The test adds one and sends it from the API's client through a host daemon to a guest
// daemon.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { HostClient } from '../../../api/src/hosts/client.ts';
import { Secret } from '../../../guest/src/access/secret.ts';
import { createGuestServer } from '../../../guest/src/server/server.ts';
import { hostCalls } from '../../../host/src/server/calls.ts';
import { HostTokens } from '../../../host/src/server/host-tokens.ts';
import { HostServer } from '../../../host/src/server/server.ts';
import { CALLS } from '@berth/protocol/calls/all.ts';
import { defineCall, type PartsOf, type ResponseOf } from '@berth/protocol/calls/define.ts';
import { GUEST_WIRE, wireOf } from '@berth/protocol/calls/wire.ts';
import { SharedCapacity } from '@berth/protocol/shared-capacity.ts';
import { pino } from 'pino';
import { z } from 'zod';
import { LifecycleFixture, SMALL, vmIdOf } from '../../../host/test/vm/lifecycle/lifecycle-fixture.ts';
import { json } from '../../../host/test/vm/scripted-guest.ts';

const VM = vmIdOf('a');
const TOKEN = 't'.repeat(43);
const HOST = { hostId: 'hst_x', startId: 'run_x', driver: 'fake', accelerator: 'none', qemuVersion: null } as const;

/** The definition. */
const greet = defineCall({
  name: 'greet',
  target: 'pass-through',
  method: 'POST',
  path: '/greetings/{language}',
  fenced: true,
  params: z.strictObject({ language: z.enum(['en', 'fr']) }),
  body: z.strictObject({ name: z.string().min(1).max(8) }),
  requestBytes: 64,
  form: 'json',
  response: z.strictObject({ greeting: z.string().max(20) }),
  responseBytes: 256,
  deadlineMs: 20_000,
  marginMs: 5_000,
  repeatable: true,
  since: 2,
});

/** The handler in the guest daemon. */
const handlers = {
  greet: async ({ params, body }: PartsOf<typeof greet>): Promise<ResponseOf<typeof greet>> => ({
    greeting: `${params.language === 'fr' ? 'bonjour' : 'hello'}, ${body.name}`,
  }),
};

describe('a pass-through call that is added', () => {
  let host: LifecycleFixture;
  let server: HostServer;
  let client: HostClient;
  beforeEach(async () => {
    host = await LifecycleFixture.start();
    server = new HostServer({
      calls: hostCalls({
        calls: [...CALLS, greet],
        lifecycle: host.lifecycle,
        pool: { state: () => ({ ready: 0, target: 0 }) },
        host: { ...HOST, templateId: null },
      }),
      streamBounds: { idleMs: 1_000, longestMs: 1_000 },
      tokens: new HostTokens([TOKEN]),
      log: pino({ level: 'silent' }),
    });
    const url = await server.listen({ socket: join(host.root, 'host.sock'), uid: null, gid: null });
    client = new HostClient({ url, token: () => TOKEN, streams: new SharedCapacity(8) });
    await client.createVm(VM, { epoch: 1, spec: SMALL });
    const secret = new Secret(join(host.root, 'guest-secret'));
    secret.begin(scripted().secret ?? '');
    secret.complete();
    const guest = createGuestServer({ secret, spaceEveryMs: 10_000, handlers, wire: [...GUEST_WIRE, wireOf(greet)] });
    scripted().handler = (request, response) => void guest.emit('request', request, response);
  });
  afterEach(async () => {
    client.close();
    await server.close(AbortSignal.abort());
    await host.stop();
  });

  const scripted = () => {
    const [vm] = host.machine.of(VM);
    assert.ok(vm);
    return vm.guest;
  };
  /** The use. */
  const use = (language: 'en' | 'fr', name: string, epoch = 1): Promise<{ greeting: string }> =>
    client.call(greet, { vmId: VM, epoch, params: { language }, body: { name } });

  it('reaches the guest daemon through the host daemon, with the secret of the guest', async () => {
    assert.deepEqual(await use('fr', 'Ada'), { greeting: 'bonjour, Ada' });
    const { url, authorization } = scripted().requests.at(-1) ?? {};
    assert.deepEqual([url, authorization], ['/greetings/fr', `Bearer ${scripted().secret}`]);
  });

  it('is checked for schema, length and epoch before the guest gets it', async () => {
    const before = scripted().requests.length;
    await assert.rejects(use('de' as 'en', 'Ada'), { code: 'invalid_request', message: /the language in the path/ });
    await assert.rejects(use('en', ''), { code: 'invalid_request', message: /name/ });
    await assert.rejects(use('en', 'x'.repeat(64)), { code: 'invalid_request', message: /longer than 64 bytes/ });
    // A wake of a VM that runs raises its epoch.
    await client.wakeVm(VM, { epoch: 3, spec: SMALL });
    await assert.rejects(use('en', 'Ada', 2), { code: 'stale_epoch' });
    assert.ok(
      !scripted()
        .requests.slice(before)
        .some(({ url }) => url.startsWith('/greetings')),
    );
    assert.deepEqual(await use('en', 'Ada', 3), { greeting: 'hello, Ada' });
  });

  it('is refused while its VM does not run', async () => {
    await client.sleepVm(VM, { epoch: 2 });
    await assert.rejects(use('en', 'Ada', 2), { code: 'vm_not_running' });
  });

  it('rejects a response that is invalid or too long', async () => {
    for (const body of [{ greeting: 5 }, { greeting: 'x'.repeat(300) }, 'hello']) {
      scripted().handler = (_request, response) => json(response, 200, body);
      await assert.rejects(use('en', 'Ada'), { code: 'guest_unreachable' });
    }
  });

  it('is checked by the guest daemon as well', async () => {
    const response = await fetch(`http://127.0.0.1:${scripted().endpoint.port}/greetings/en`, {
      method: 'POST',
      headers: { authorization: `Bearer ${scripted().secret}` },
      body: JSON.stringify({ name: 'Ada', epoch: 1 }),
    });
    assert.deepEqual(
      [response.status, await response.json()],
      [400, { error: { message: 'the body has an unknown field "epoch"; it takes name' } }],
    );
  });
});
