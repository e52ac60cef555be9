import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Agent, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { once } from 'node:events';
import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { AGENT_READY_MS } from '@berth/protocol/agent-errors.ts';
import { guestStartAgent, startAgent } from '@berth/protocol/calls/agents.ts';
import { deadlineOf } from '@berth/protocol/calls/define.ts';
import { vmHistory, vmMetrics } from '@berth/protocol/calls/metrics.ts';
import { hostInfo, vmList, vmSshHostKey } from '@berth/protocol/calls/vms.ts';
import { hostError, storageGib, vmView } from '@berth/protocol/host.ts';
import { pino } from 'pino';
import { HostTokens } from '../../src/server/host-tokens.ts';
import type { HostServer } from '../../src/server/server.ts';
import { gate } from '../vm/gate.ts';
import { LifecycleFixture, SMALL, vmIdOf } from '../vm/lifecycle/lifecycle-fixture.ts';
import { serverOf } from './served-host.ts';

const A = vmIdOf('a');
const TOKEN = randomBytes(32).toString('hex');
const CLONE = {
  epoch: 1,
  url: 'https://git.example.test/a/b',
  branch: null,
  credentials: null,
  timeoutSeconds: 5,
  maxMib: 1,
};

interface Answer {
  status: number;
  body: unknown;
}

describe('the HTTP of a host daemon', () => {
  let host: LifecycleFixture;
  let server: HostServer;
  let tokens: HostTokens;
  let socketPath: string;
  let agent: Agent;
  beforeEach(async () => {
    host = await LifecycleFixture.start();
    socketPath = join(host.root, 'host.sock');
    // Socket of a killed daemon.
    await writeFile(socketPath, '');
    tokens = new HostTokens([TOKEN]);
    server = serverOf(host, tokens);
    assert.equal(await server.listen({ socket: socketPath, uid: null, gid: null }), `unix:${socketPath}`);
    agent = new Agent({ keepAlive: true });
  });
  afterEach(async () => {
    agent.destroy();
    await server.close(AbortSignal.abort());
    await host.stop();
  });

  async function open(
    method: string,
    path: string,
    body?: string,
    token: string | null = TOKEN,
  ): Promise<IncomingMessage> {
    const request = httpRequest({
      socketPath,
      agent,
      method,
      path,
      headers: token === null ? {} : { authorization: `Bearer ${token}` },
    });
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return response;
  }

  async function call(method: string, path: string, body?: unknown, token: string | null = TOKEN): Promise<Answer> {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const response = await open(method, path, text, token);
    const chunks = await response.toArray();
    return { status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) };
  }

  function codeOf({ body }: Answer): string {
    return hostError.parse(body).error.code;
  }

  it('restricts its socket to its owner', async () => {
    const { mode } = await stat(socketPath);
    assert.equal(mode & 0o777, 0o600);
  });

  it('holds 2,000 connections made at once until it accepts them', async () => {
    const sockets = Array.from({ length: 2_000 }, () => connect(socketPath));
    try {
      await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  it('accepts a new token at once and a removed one no longer, when its file changes', async () => {
    const next = 'n'.repeat(40);
    assert.equal((await call('GET', '/host', undefined, next)).status, 401);
    tokens.replaceWith([next, TOKEN]);
    for (const token of [next, TOKEN]) assert.equal((await call('GET', '/host', undefined, token)).status, 200);
    const stopping = new AbortController();
    const reads = [() => Promise.reject(new Error('gone')), () => Promise.resolve([next])];
    const following = tokens.follow(
      async () => {
        const read = reads.shift();
        if (reads.length === 0) stopping.abort();
        return (await read?.()) ?? [next];
      },
      stopping.signal,
      pino({ level: 'silent' }),
    );
    await following;
    assert.equal((await call('GET', '/host', undefined, TOKEN)).status, 401);
    assert.equal((await call('GET', '/host', undefined, next)).status, 200);
  });

  it('rejects requests without the token on every route', async () => {
    for (const [method, path] of [
      ['GET', '/host'],
      ['GET', '/vms'],
      ['GET', `/vms/${A}`],
      ['PUT', `/vms/${A}`],
      ['DELETE', `/vms/${A}?epoch=1`],
      ['POST', `/vms/${A}/exec`],
      ['POST', `/vms/${A}/clone`],
      ['POST', `/vms/${A}/sleep`],
      ['POST', `/vms/${A}/wake`],
      ['POST', `/vms/${A}/resize`],
      ['GET', `/vms/${A}/metrics`],
      ['GET', `/vms/${A}/metrics/history?windowSeconds=60`],
      ['GET', `/vms/${A}/ssh-host-key`],
      ['GET', `/vms/${A}/file?path=/a`],
      ['PUT', `/vms/${A}/file?path=/a`],
      ['GET', `/vms/${A}/files?path=/&depth=1`],
      ['GET', '/nothing'],
    ] as const) {
      for (const token of [null, '', 'wrong', `${TOKEN}x`, TOKEN.slice(1)]) {
        const answer = await call(method, path, undefined, token);
        assert.deepEqual([answer.status, codeOf(answer)], [401, 'unauthorized'], `${method} ${path}`);
      }
    }
  });

  it('creates, shows, lists and destroys a VM, in the format of the protocol', async () => {
    const created = await call('PUT', `/vms/${A}`, { epoch: 1, spec: SMALL });
    assert.equal(created.status, 200);
    assert.equal(vmView.parse(created.body).status, 'running');
    assert.deepEqual((await call('GET', `/vms/${A}`)).body, created.body);
    assert.equal(vmList.parse((await call('GET', '/vms')).body).vms.length, 1);
    const info = hostInfo.parse((await call('GET', '/host')).body);
    assert.deepEqual(info.reserved, { vcpu: 1, memoryMib: 1_024, diskGib: storageGib(SMALL) });
    assert.ok(info.capacity.vcpu > 0);
    assert.deepEqual([info.pool, info.largest.vcpu], [{ ready: 1, target: 2 }, 8]);
    assert.deepEqual(await call('DELETE', `/vms/${A}?epoch=2`), {
      status: 200,
      body: { id: A, epoch: 2, status: 'destroyed' },
    });
    assert.deepEqual(vmList.parse((await call('GET', '/vms')).body).vms, []);
    assert.equal((await call('GET', `/vms/${A}`)).status, 200);
    assert.equal(codeOf(await call('GET', `/vms/${vmIdOf('b')}`)), 'vm_not_found');
  });

  it('resizes, measures, sleeps and wakes a VM, in the format of the protocol', async () => {
    await call('PUT', `/vms/${A}`, { epoch: 1, spec: SMALL });
    const size = { vcpu: 2, memoryMib: 2_048, diskGib: 20 };
    const resized = await call('POST', `/vms/${A}/resize`, { epoch: 2, size });
    assert.deepEqual([resized.status, vmView.parse(resized.body).spec], [200, { ...SMALL, ...size }]);
    const metrics = await call('GET', `/vms/${A}/metrics`);
    assert.deepEqual([metrics.status, vmMetrics.parse(metrics.body).host.cpuMs], [200, 42.5]);
    await host.lifecycle.sampler.sample();
    const slept = await call('POST', `/vms/${A}/sleep`, { epoch: 3 });
    assert.deepEqual([slept.status, vmView.parse(slept.body).keeps], [200, 'snapshot']);
    assert.equal(codeOf(await call('GET', `/vms/${A}/metrics`)), 'vm_not_running');
    const history = await call('GET', `/vms/${A}/metrics/history?windowSeconds=60`);
    assert.deepEqual(
      vmHistory.parse(history.body).points.map(({ residentMib }) => residentMib),
      [100],
    );
    for (const windowSeconds of ['0', '86401', 'x', '']) {
      const refused = await call('GET', `/vms/${A}/metrics/history?windowSeconds=${windowSeconds}`);
      assert.equal(codeOf(refused), 'invalid_request', windowSeconds);
    }
    const woken = await call('POST', `/vms/${A}/wake`, { epoch: 4, spec: { ...SMALL, ...size } });
    assert.deepEqual([woken.status, vmView.parse(woken.body).woke?.from], [200, 'snapshot']);
    assert.deepEqual(codeOf(await call('POST', `/vms/${A}/sleep`, { epoch: 3 })), 'stale_epoch');
    assert.equal((await call('POST', `/vms/${vmIdOf('b')}/wake`, { epoch: 1, spec: SMALL })).status, 409);
  });

  it('returns each VM’s own host key from its create to its end', async () => {
    const keyOf = async (id: string): Promise<string> =>
      vmSshHostKey.parse((await call('GET', `/vms/${id}/ssh-host-key`)).body).publicKey;
    const B = vmIdOf('b');
    assert.equal(codeOf(await call('GET', `/vms/${A}/ssh-host-key`)), 'vm_not_found');
    for (const id of [A, B]) await call('PUT', `/vms/${id}`, { epoch: 1, spec: SMALL });
    const key = await keyOf(A);
    assert.notEqual(await keyOf(B), key);
    await call('POST', `/vms/${A}/sleep`, { epoch: 2 });
    assert.equal(await keyOf(A), key);
    await call('POST', `/vms/${A}/wake`, { epoch: 3, spec: SMALL });
    assert.equal(await keyOf(A), key);
    await call('DELETE', `/vms/${A}?epoch=4`);
    assert.equal(codeOf(await call('GET', `/vms/${A}/ssh-host-key`)), 'vm_not_found');
  });

  it('refuses requests outside the protocol and names the fault', async () => {
    for (const [method, path, body, text] of [
      ['PUT', `/vms/${A}`, '{', /not JSON/],
      ['PUT', `/vms/${A}`, undefined, /not JSON/],
      ['PUT', `/vms/${A}`, { epoch: 0, spec: SMALL }, /epoch/],
      ['PUT', `/vms/${A}`, { epoch: 1, spec: { ...SMALL, vcpu: 1.5 } }, /vcpu/],
      ['PUT', `/vms/${A}`, { epoch: 1, spec: { ...SMALL, extra: 1 } }, /extra/],
      ['PUT', '/vms/..%2f..%2fetc', { epoch: 1, spec: SMALL }, /id in the path/],
      ['DELETE', `/vms/${A}`, undefined, /epoch/],
      ['DELETE', `/vms/${A}?epoch=x`, undefined, /epoch/],
      ['POST', `/vms/${A}/exec`, { command: 'true', timeoutSeconds: 601 }, /timeoutSeconds/],
      ['POST', `/vms/${A}/clone`, { ...CLONE, url: 'file:///etc' }, /url/],
      ['POST', `/vms/${A}/clone`, { ...CLONE, url: 'https://user:secret@git.example.test/a/b' }, /url/],
      ['POST', `/vms/${A}/clone`, { ...CLONE, credentials: { username: 'user', token: ['secret'] } }, /token/],
      ['POST', `/vms/${A}/sleep`, {}, /epoch/],
      ['POST', `/vms/${A}/wake`, { epoch: 2 }, /spec/],
      ['POST', `/vms/${A}/resize`, { epoch: 2, size: { vcpu: 1, memoryMib: 1_024 } }, /diskGib/],
      [
        'POST',
        `/vms/${A}/resize`,
        { epoch: 2, size: { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'x' } },
        /hostname/,
      ],
    ] as const) {
      const answer = await call(method, path, body);
      assert.deepEqual([answer.status, codeOf(answer)], [400, 'invalid_request'], `${method} ${path}`);
      assert.match(hostError.parse(answer.body).error.message, text);
      assert.doesNotMatch(hostError.parse(answer.body).error.message, /secret/);
    }
    assert.equal(codeOf(await call('PATCH', `/vms/${A}`)), 'route_not_found');
    assert.equal(codeOf(await call('GET', '/vms/')), 'route_not_found');
  });

  it('refuses a body that is too long, and still responds', async () => {
    const answer = await call('PUT', `/vms/${A}`, ' '.repeat(3 * 1_024 * 1_024));
    assert.deepEqual([answer.status, codeOf(answer)], [400, 'invalid_request']);
    assert.match(hostError.parse(answer.body).error.message, /longer than 2097152 bytes/);
  });

  it('names the shortage when a VM does not fit', async () => {
    const spec = { ...SMALL, diskGib: 100_000 };
    const answer = await call('PUT', `/vms/${A}`, { epoch: 1, spec });
    assert.equal(answer.status, 507);
    assert.deepEqual(hostError.parse(answer.body).error.shortage, {
      resource: 'diskGib',
      requested: storageGib(spec),
      available: 1_000,
    });
  });

  it('returns a bug as a bare 500', async () => {
    await call('PUT', `/vms/${A}`, { epoch: 1, spec: SMALL });
    host.driver.onDestroy = async () => {
      throw new Error('a path that nobody should see');
    };
    const answer = await call('DELETE', `/vms/${A}?epoch=1`);
    assert.deepEqual([answer.status, codeOf(answer)], [500, 'internal']);
    assert.ok(!JSON.stringify(answer.body).includes('nobody'));
    host.driver.onDestroy = async () => {};
  });

  describe('running a command', () => {
    beforeEach(async () => {
      await call('PUT', `/vms/${A}`, { epoch: 1, spec: SMALL });
    });

    function guest(): NonNullable<ReturnType<typeof host.machine.of>[number]>['guest'] {
      const [vm] = host.machine.of(A);
      assert.ok(vm);
      return vm.guest;
    }

    it('forwards the command and its response', async () => {
      const answer = await call('POST', `/vms/${A}/exec`, { command: 'echo "é"', timeoutSeconds: 5 });
      assert.equal(answer.status, 200);
      assert.deepEqual(JSON.parse((answer.body as { stdout: string }).stdout), {
        command: 'echo "é"',
        timeoutSeconds: 5,
      });
    });

    it('sends headers before the command ends', async () => {
      const go = Promise.withResolvers<void>();
      guest().handler = (_request, response) => {
        response.writeHead(200);
        response.flushHeaders();
        void go.promise.then(() => response.end('{}'));
      };
      const response = await open('POST', `/vms/${A}/exec`, JSON.stringify({ command: 'sleep 1', timeoutSeconds: 5 }));
      assert.equal(response.statusCode, 200);
      go.resolve();
      assert.equal(String(Buffer.concat(await response.toArray())), '{}');
    });

    it('closes the guest’s connection when the caller leaves', async () => {
      const [asked, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      guest().handler = (_request, response) => {
        response.once('close', closed.resolve);
        asked.resolve();
      };
      const caller = connect(socketPath);
      const body = JSON.stringify({ command: 'sleep 60', timeoutSeconds: 60 });
      caller.write(
        `POST /vms/${A}/exec HTTP/1.1\r\nHost: h\r\n` +
          `Authorization: Bearer ${TOKEN}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      await asked.promise;
      caller.destroy();
      await closed.promise;
    });

    it('forwards the spaces of a starting agent session at once, so that no idle limit ends the wait', async () => {
      const started = Promise.withResolvers<ServerResponse>();
      guest().handler = (_request, response) => {
        response.writeHead(200).flushHeaders();
        started.resolve(response);
      };
      const start = { epoch: 1, agent: 'agent_one', mode: 'create', approvals: 'ask', gateway: false };
      const response = await open('POST', `/vms/${A}/agents/ags_${'a'.repeat(24)}/start`, JSON.stringify(start));
      assert.equal(response.statusCode, 200);
      const chunks = response[Symbol.asyncIterator]();
      const inGuest = await started.promise;
      for (let space = 0; space < 3; space += 1) {
        inGuest.write(' ');
        assert.equal(String((await chunks.next()).value), ' ');
      }
      const closed = once(inGuest, 'close');
      response.destroy();
      await closed;
      const deadlines = [deadlineOf(guestStartAgent, 'guest', undefined), deadlineOf(startAgent, 'host', undefined)];
      assert.deepEqual(
        deadlines.toSorted((a, b) => a - b),
        deadlines,
      );
      assert.ok(Number(deadlines[0]) > AGENT_READY_MS, 'the guest reports that its agent is not ready');
    });

    it('disconnects the caller when the guest breaks off, so that no partial response looks complete', async () => {
      guest().handler = (request, response) => {
        response.writeHead(200);
        response.write('{"exitCode":0', () => request.socket.destroy());
      };
      const response = await open('POST', `/vms/${A}/exec`, JSON.stringify({ command: 'true', timeoutSeconds: 5 }));
      await assert.rejects(response.toArray(), { code: 'ECONNRESET' });
    });

    it('returns 502 for a guest outside its protocol, 409 for a stopped VM, 404 for a missing one', async () => {
      guest().handler = (request) => void request.socket.destroy();
      const command = { command: 'true', timeoutSeconds: 5 };
      const broken = await call('POST', `/vms/${A}/exec`, command);
      assert.deepEqual([broken.status, codeOf(broken)], [502, 'guest_unreachable']);
      await host.machine.kill(A);
      await host.becomes(A, 'dead');
      const dead = await call('POST', `/vms/${A}/exec`, command);
      assert.deepEqual([dead.status, codeOf(dead)], [409, 'vm_not_running']);
      await host.lifecycle.destroy(A, 1);
      const gone = await call('POST', `/vms/${A}/exec`, command);
      assert.deepEqual([gone.status, codeOf(gone)], [404, 'vm_not_found']);
    });
  });

  it('finishes in-flight calls when it closes, and accepts no new ones', async () => {
    const { begun, wait, go } = gate();
    host.driver.onCreate = () => wait();
    const create = call('PUT', `/vms/${A}`, { epoch: 1, spec: SMALL });
    await begun;
    const closed = server.close(new AbortController().signal);
    await assert.rejects(open('GET', '/host'), /ENOENT|ECONNREFUSED/);
    go();
    assert.equal((await create).status, 200);
    await closed;
  });
});
