// A clone in a VM's guest: fenced by the epoch, bounded like all output of a guest, and finished
// before the VM's memory is saved.
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { newSecretKey } from '@berth/guest/clones/seal.ts';
import { guestClone, guestCloneResult } from '@berth/protocol/calls/clones.ts';
import type { VmClone } from '@berth/protocol/calls/clones.ts';
import { LifecycleFixture, SMALL, vmIdOf } from './lifecycle-fixture.ts';
import { json, type ScriptedGuest } from '../scripted-guest.ts';

const A = vmIdOf('a');
const NEVER = new AbortController().signal;
const secret = newSecretKey();
const CLONE: Omit<VmClone, 'epoch'> = {
  url: 'https://git.example.test/acme/web.git',
  branch: 'main',
  credentials: { username: 'user', token: 'token' },
  timeoutSeconds: 5,
  maxMib: 100,
};

describe('cloning in a VM', () => {
  let host: LifecycleFixture;
  let calls: string[];
  /** Clones that the guest has accepted without a response yet. */
  let held: ServerResponse[];
  beforeEach(async () => {
    host = await LifecycleFixture.start();
    calls = [];
    held = [];
    await host.lifecycle.create(A, { epoch: 2, spec: SMALL });
  });
  afterEach(async () => {
    await host.stop();
  });

  const guest = (): ScriptedGuest => host.guest(A);

  /** The guest accepts clones, holds them, and ends them on request. */
  function delayClones(atEnd: (response: ServerResponse) => void = (response) => json(response, 200, {})): void {
    guest().handler = (request, response) => {
      calls.push(`${request.method} ${request.url}`);
      request.resume();
      if (request.url === '/clone/key') {
        json(response, 200, { key: secret.key });
      } else if (request.url === '/clone') {
        response.writeHead(200);
        response.flushHeaders();
        held.push(response);
      } else if (request.url === '/clone/end') {
        for (const clone of held) clone.destroy();
        atEnd(response);
      } else {
        json(response, 200, { ok: true, version: 'scripted', uptimeSeconds: 1 });
      }
    };
  }

  const clone = (epoch: number) => host.lifecycle.clone(A, { epoch, ...CLONE }, NEVER);

  it('forwards the clone request without the epoch, and returns the response', async () => {
    let asked = '';
    guest().handler = (request, response) => {
      if (request.url === '/clone/key') {
        json(response, 200, { key: secret.key });
        return;
      }
      request.setEncoding('utf8').on('data', (chunk: string) => (asked += chunk));
      request.once('end', () => json(response, 200, { outcome: 'cloned' }));
    };
    const answer = await (await clone(2)).toArray();
    assert.deepEqual(guestCloneResult.parse(JSON.parse(Buffer.concat(answer).toString())), { outcome: 'cloned' });
    const { credentials, ...rest } = guestClone.parse(JSON.parse(asked));
    assert.ok(credentials !== null);
    assert.deepEqual({ ...rest, credentials: secret.open(credentials) }, CLONE);
  });

  it('requests no key without credentials, and sends none to a guest with an invalid key', async () => {
    delayClones();
    (await host.lifecycle.clone(A, { epoch: 2, ...CLONE, credentials: null }, NEVER)).destroy();
    assert.deepEqual(calls, ['POST /clone']);
    for (const key of ['x', `${'A'.repeat(59)}=`]) {
      guest().handler = (request, response) => {
        calls.push(`${request.method} ${request.url}`);
        json(response, 200, { key });
      };
      await assert.rejects(clone(2), { code: 'guest_unreachable' });
    }
    assert.deepEqual(calls.slice(1), ['POST /clone/key', 'POST /clone/key']);
  });

  it('refuses a late epoch, and accepts one ahead of the host’s', async () => {
    delayClones();
    await assert.rejects(clone(1), { code: 'stale_epoch' });
    assert.deepEqual(calls, []);
    (await clone(3)).destroy();
    await host.lifecycle
      .resize(A, { epoch: 4, size: { vcpu: 2, memoryMib: 1_024, diskGib: 10 } })
      .catch(() => undefined);
    await assert.rejects(clone(3), { code: 'stale_epoch' });
  });

  it('refuses a stopped VM and a missing one', async () => {
    await host.lifecycle.sleep(A, { epoch: 3 });
    await assert.rejects(clone(3), { code: 'vm_not_running' });
    await host.lifecycle.destroy(A, 4);
    await assert.rejects(clone(4), { code: 'vm_not_found' });
  });

  it('cuts off a guest whose clone response is over the limit', async () => {
    guest().handler = (request, response) => {
      if (request.url === '/clone/key') {
        json(response, 200, { key: secret.key });
        return;
      }
      response.writeHead(200);
      response.end('x'.repeat(1_000_000));
    };
    const answer = await clone(2);
    await assert.rejects(answer.toArray(), { code: 'guest_unreachable', message: /longer than/ });
  });

  it('ends in the guest before a sleep captures its memory', async () => {
    delayClones();
    const answer = (await clone(2)).toArray();
    const broken = assert.rejects(answer);
    host.driver.onSleep = async () => void calls.push('capture');
    await host.lifecycle.sleep(A, { epoch: 3 });
    assert.deepEqual(calls, ['POST /clone/key', 'POST /clone', 'POST /clone/end', 'capture']);
    await broken;
  });

  it('ends before a sleep even if the guest had not accepted it yet', async () => {
    const arrived = Promise.withResolvers<ServerResponse>();
    guest().handler = (request, response) => {
      calls.push(`${request.method} ${request.url}`);
      if (request.url === '/clone/key') json(response, 200, { key: secret.key });
      else if (request.url === '/clone') arrived.resolve(response);
      else json(response, 200, {});
    };
    const answer = clone(2);
    const response = await arrived.promise;
    const asleep = host.lifecycle.sleep(A, { epoch: 3 });
    await assert.rejects(clone(3), { code: 'vm_not_running' });
    assert.deepEqual(calls, ['POST /clone/key', 'POST /clone']);
    response.writeHead(200);
    response.flushHeaders();
    await asleep;
    assert.deepEqual(calls, ['POST /clone/key', 'POST /clone', 'POST /clone/end']);
    await assert.rejects((await answer).toArray());
  });

  it('does not keep a VM awake whose guest refuses to end it', async () => {
    delayClones((response) => json(response, 500, { error: { message: 'never' } }));
    (await clone(2)).destroy();
    assert.equal((await host.lifecycle.sleep(A, { epoch: 3 })).status, 'asleep');
  });

  it('is ended at a sleep by a restarted daemon; a daemon that saw no clone sends nothing', async () => {
    delayClones();
    await host.lifecycle.sleep(A, { epoch: 3 });
    assert.deepEqual(calls, []);
    const b = vmIdOf('b');
    await host.lifecycle.create(b, { epoch: 1, spec: SMALL });
    const seen: string[] = [];
    const [vm] = host.machine.of(b);
    assert.ok(vm);
    const { guest } = vm;
    await host.restart();
    guest.handler = (request, response) => {
      seen.push(`${request.method} ${request.url}`);
      // A guest older than clones.
      json(response, 404, { error: { message: 'no route' } });
    };
    assert.equal((await host.lifecycle.sleep(b, { epoch: 2 })).status, 'asleep');
    assert.deepEqual(seen, ['POST /clone/end']);
  });

  it('ends at a destroy', async () => {
    delayClones();
    const answer = (await clone(2)).toArray();
    const broken = assert.rejects(answer);
    await host.lifecycle.destroy(A, 3);
    await broken;
  });
});
