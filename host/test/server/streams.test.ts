// Raw streams into guests through the host daemon's HTTP: refusals, bounds and ends.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { STREAM_HEADERS } from '@berth/protocol/calls/connections.ts';
import { GUEST_PORT } from '@berth/protocol/guest.ts';
import { hostError } from '@berth/protocol/host.ts';
import type { SpliceBounds } from '@berth/protocol/splice.ts';
import { HostTokens } from '../../src/server/host-tokens.ts';
import type { HostServer, ListenOn } from '../../src/server/server.ts';

import { secondsToProbe } from '../../../protocol/test/keepalive-timer.ts';
import { LifecycleFixture, SMALL, vmIdOf } from '../vm/lifecycle/lifecycle-fixture.ts';
import type { ScriptedVm } from '../vm/scripted-driver.ts';
import { serverOf } from './served-host.ts';

const [A, B, C] = [vmIdOf('a'), vmIdOf('b'), vmIdOf('c')];
const TOKEN = 't'.repeat(43);
const BOUNDS = { idleMs: 60_000, longestMs: 60_000 };

interface AskOptions {
  token?: string;
  protocol?: string;
  headers?: Record<string, string>;
}

describe('the streams of a host daemon', () => {
  let host: LifecycleFixture;
  let server: HostServer;
  let socketPath: string;
  /** A program in a guest: sends a greeting, then echoes. */
  let program: Server;
  let port: number;
  const connections = new Set<Socket>();

  async function serve(
    bounds: SpliceBounds,
    on: ListenOn = { socket: socketPath, uid: null, gid: null },
  ): Promise<string> {
    server = serverOf(host, new HostTokens([TOKEN]), bounds);
    return server.listen(on);
  }

  beforeEach(async () => {
    host = await LifecycleFixture.start();
    socketPath = join(host.root, 'host.sock');
    await serve(BOUNDS);
    program = createServer({ allowHalfOpen: true }, (socket) => {
      connections.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => connections.delete(socket));
      socket.write('hello ');
      socket.pipe(socket);
    });
    program.listen(0, '127.0.0.1');
    await once(program, 'listening');
    ({ port } = program.address() as AddressInfo);
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
  });
  afterEach(async () => {
    await server.close(AbortSignal.abort());
    program.close();
    connections.forEach((socket) => socket.destroy());
    connections.clear();
    await host.stop();
  });

  async function ask(
    path: string,
    { token = TOKEN, protocol = 'tcp', headers = {} }: AskOptions = {},
  ): Promise<Socket | IncomingMessage> {
    const asked = request({
      path,
      createConnection: () => connect({ path: socketPath, allowHalfOpen: true }),
      headers: { ...headers, connection: 'Upgrade', upgrade: protocol, authorization: `Bearer ${token}` },
    });
    asked.end();
    return new Promise((resolve, reject) => {
      asked.once('upgrade', (response, stream, head) => {
        assert.deepEqual([response.statusCode, response.headers.upgrade], [101, protocol]);
        stream.on('error', () => undefined);
        stream.unshift(head);
        resolve(stream);
      });
      asked.once('response', resolve);
      asked.once('error', reject);
    });
  }

  async function open(path = `/vms/${A}/ports/${port}`): Promise<Socket> {
    const answer = await ask(path);
    assert.ok('destroySoon' in answer, 'the stream was refused');
    return answer;
  }

  async function refusal(path: string, options?: AskOptions): Promise<[number, string, string]> {
    const answer = await ask(path, options);
    assert.ok(!('destroySoon' in answer), `${path} was not refused`);
    const { error } = hostError.parse(JSON.parse(Buffer.concat(await answer.toArray()).toString()));
    return [answer.statusCode ?? 0, error.code, error.message];
  }

  /** A stream that has carried bytes in both directions. */
  async function openAndUse(): Promise<Socket> {
    const stream = await open();
    const [said] = (await once(stream, 'data')) as [Buffer];
    assert.equal(said.toString(), 'hello ');
    return stream;
  }

  async function closeStreams(streams: string[]): Promise<number> {
    const asked = request({
      socketPath,
      method: 'POST',
      path: '/streams/close',
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    asked.end(JSON.stringify({ streams }));
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    response.resume();
    return response.statusCode ?? 0;
  }

  /** Waits until the stream has ended or failed. */
  async function closed(stream: Socket): Promise<void> {
    stream.resume();
    if (stream.readableEnded) stream.destroy();
    else stream.once('end', () => stream.destroy());
    // events.once would reject on an error event.
    if (!stream.closed) await new Promise((resolve) => stream.once('close', resolve));
  }

  function machine(id = A): ScriptedVm {
    const [vm] = host.machine.of(id);
    assert.ok(vm);
    return vm;
  }

  it('carries bytes both ways, early bytes first, and forwards the half-close of each direction', async () => {
    const raw = connect({ path: socketPath, allowHalfOpen: true });
    raw.write(
      `GET /vms/${A}/ports/${port} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${TOKEN}\r\n` +
        'connection: Upgrade\r\nupgrade: tcp\r\n\r\nearly, ',
    );
    raw.end('late');
    const answer = Buffer.concat((await raw.toArray()) as Buffer[]).toString();
    assert.equal(
      answer,
      'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: tcp\r\n\r\nhello early, late',
    );
  });

  it('is refused without the token, for a missing or stopped VM and for an invalid port', async () => {
    for (const token of ['', 'wrong', TOKEN.slice(1)])
      assert.deepEqual((await refusal(`/vms/${A}/ports/${port}`, { token })).slice(0, 2), [401, 'unauthorized']);

    assert.deepEqual((await refusal(`/vms/${B}/ports/${port}`)).slice(0, 2), [404, 'vm_not_found']);
    assert.deepEqual((await refusal(`/vms/sbx_x/ports/${port}`)).slice(0, 2), [400, 'invalid_request']);
    assert.deepEqual((await refusal(`/vms/${A}`)).slice(0, 2), [404, 'route_not_found']);
    assert.deepEqual((await refusal(`/vms/${A}/ports/${port}/`)).slice(0, 2), [404, 'route_not_found']);
    for (const text of [
      '0',
      '-1',
      `0${port}`,
      `+${port}`,
      `${port}.0`,
      '65536',
      '1e3',
      'ssh',
      '%38%30',
      `${port}%00`,
    ]) {
      const [status, code, message] = await refusal(`/vms/${A}/ports/${text}`);
      assert.deepEqual([status, code], [400, 'invalid_request'], text);
      assert.match(message, /the port in the path is not valid/);
    }
    const [status, code, message] = await refusal(`/vms/${A}/ports/${port}`, { protocol: 'websocket' });
    assert.deepEqual([status, code, message], [400, 'invalid_request', 'this stream requires Upgrade: tcp']);
    await host.lifecycle.sleep(A, { epoch: 2 });
    assert.deepEqual((await refusal(`/vms/${A}/ports/${port}`)).slice(0, 2), [409, 'vm_not_running']);
  });

  it('tells a caller without an upgrade how to request one', async () => {
    const asked = request({
      socketPath,
      path: `/vms/${A}/ports/${port}`,
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    asked.end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    assert.match(
      Buffer.concat(await response.toArray()).toString(),
      /is a stream: send the headers Connection: Upgrade and Upgrade: tcp/,
    );
  });

  it('never leads to the guest daemon, by its port or its forwarded port', async () => {
    for (const own of [GUEST_PORT, machine().guest.endpoint.port])
      assert.deepEqual((await refusal(`/vms/${A}/ports/${own}`)).slice(0, 2), [403, 'port_forbidden']);

    assert.ok(
      machine().guest.requests.every(({ url }) => !url.startsWith('/ports')),
      'the guest was not even asked',
    );
  });

  it('falls back to the guest daemon, with its secret, on a closed port and reports the outcome', async () => {
    program.close();
    const { guest } = machine();
    for (const [status, expected] of [
      [502, [502, 'port_refused']],
      [403, [403, 'port_forbidden']],
      [504, [502, 'guest_unreachable']],
      [401, [502, 'guest_unreachable']],
      [200, [502, 'guest_unreachable']],
    ] as const) {
      guest.upgrade = (request, socket) => {
        assert.deepEqual([request.url, request.headers.authorization], [`/ports/${port}`, `Bearer ${guest.secret}`]);
        socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: 2\r\n\r\n{}`);
      };
      assert.deepEqual((await refusal(`/vms/${A}/ports/${port}`)).slice(0, 2), expected);
    }
    guest.upgrade = (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: tcp\r\n\r\nfrom the loopback');
      socket.pipe(socket);
    };
    const stream = await open();
    stream.end(', and back');
    assert.equal(Buffer.concat((await stream.toArray()) as Buffer[]).toString(), 'from the loopback, and back');
  });

  it('leads to a terminal of the requested size, and reports when there are too many', async () => {
    const { guest } = machine();
    const terminal = (query: string): string => `/vms/${A}/terminal${query}`;
    guest.upgrade = (request, socket) => {
      assert.deepEqual([request.url, request.headers.upgrade], ['/terminal?cols=132&rows=43', 'berth-terminal']);
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: berth-terminal\r\n\r\n');
      socket.pipe(socket);
    };
    const opened = await ask(terminal('?cols=132&rows=43'), { protocol: 'berth-terminal' });
    assert.ok('destroySoon' in opened);
    opened.end('frames');
    assert.equal(Buffer.concat((await opened.toArray()) as Buffer[]).toString(), 'frames');

    // Longest command of a public request, plus its percent-encoding.
    const command = `echo ${'ü'.repeat(5_000)}`;
    const query = `?${new URLSearchParams({ tty: 'false', command }).toString()}`;
    guest.upgrade = (request, socket) => {
      assert.equal(request.url, `/terminal${query}`);
      socket.end('HTTP/1.1 500 No\r\ncontent-length: 2\r\n\r\n{}');
    };
    const failed = await refusal(terminal(query), { protocol: 'berth-terminal' });
    assert.deepEqual(
      failed,
      [502, 'guest_unreachable', 'GET /terminal: the guest returned 500'],
      'a message has nothing of a command',
    );

    guest.upgrade = (_request, socket) => void socket.end('HTTP/1.1 429 No\r\ncontent-length: 2\r\n\r\n{}');
    const refused = await refusal(terminal('?cols=80&rows=24'), { protocol: 'berth-terminal' });
    assert.deepEqual(refused, [429, 'too_many_streams', 'the VM has reached its limit of terminals or commands']);
    for (const query of [
      '',
      '?cols=80',
      '?cols=0&rows=24',
      '?cols=80&rows=1001',
      '?cols=80&rows=24&shell=sh',
      '?cols=x&rows=24',
      '?tty=false',
      '?tty=false&cols=80&rows=24&command=x',
      '?cols=80&rows=24&command=',
    ]) {
      assert.deepEqual(
        (await refusal(terminal(query), { protocol: 'berth-terminal' })).slice(0, 2),
        [400, 'invalid_request'],
        query,
      );
    }

    assert.equal((await refusal(terminal('?cols=80&rows=24'), { protocol: 'tcp' }))[1], 'invalid_request');
  });

  it('survives a guest with an unexpected response to an upgrade', async () => {
    program.close();
    const { guest } = machine();
    for (const answer of [
      'HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n',
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n',
      `HTTP/1.1 101 ${'x'.repeat(20_000)}\r\n\r\n`,
      `HTTP/1.1 502 No\r\ncontent-length: 100000\r\n\r\n${' '.repeat(100_000)}`,
      'no HTTP at all',
      '',
    ]) {
      guest.upgrade = (_request, socket) => void socket.end(answer);
      assert.deepEqual(
        (await refusal(`/vms/${A}/ports/${port}`)).slice(0, 2),
        [502, 'guest_unreachable'],
        answer.slice(0, 40),
      );
    }
  });

  it('admits streams up to the limits of VM and host, and more once some close', async () => {
    const ofOne = await Promise.all(Array.from({ length: host.streamLimits.perVm }, openAndUse));
    const [status, code, message] = await refusal(`/vms/${A}/ports/${port}`);
    assert.deepEqual([status, code], [429, 'too_many_streams']);
    assert.match(message, /the VM has reached its limit of 4 open streams \(BERTH_STREAMS_PER_VM\)/);
    await host.lifecycle.create(B, { epoch: 1, spec: SMALL });
    const ofOther: Socket[] = [];
    // One after the other: the shares of orgs depend on their order.
    for (const org of ['org_a', 'org_a', 'org_b', 'org_c']) {
      const stream = await ask(`/vms/${B}/ports/${port}`, { headers: { [STREAM_HEADERS.org]: org } });
      assert.ok('destroySoon' in stream);
      ofOther.push(stream);
    }
    await host.lifecycle.create(C, { epoch: 1, spec: SMALL });
    assert.match(
      (await refusal(`/vms/${C}/ports/${port}`))[2],
      /the host has reached its limit of 8 open streams \(BERTH_STREAMS\)/,
    );
    const [first] = ofOne;
    assert.ok(first);
    const [gone] = connections;
    assert.ok(gone);
    first.destroy();
    await Promise.all([...connections].map((socket) => Promise.race([once(socket, 'close'), freed()])));
    await open(`/vms/${C}/ports/${port}`);
    ofOther.forEach((stream) => stream.destroy());

    async function freed(): Promise<void> {
      while (connections.size >= 8) await new Promise(setImmediate);
    }
  });

  it('gives an org half of the streams that others leave, on all VMs together, and the rest to others', async () => {
    for (const id of [B, C]) await host.lifecycle.create(id, { epoch: 1, spec: SMALL });
    const openOn = (id: string, org: string) =>
      ask(`/vms/${id}/ports/${port}`, { headers: { [STREAM_HEADERS.org]: org } });
    for (const id of [A, B, A, B]) assert.ok('destroySoon' in (await openOn(id, 'org_greedy')));
    const [status, code, message] = await refusal(`/vms/${B}/ports/${port}`, {
      headers: { [STREAM_HEADERS.org]: 'org_greedy' },
    });
    assert.deepEqual([status, code], [429, 'too_many_streams']);
    assert.match(message, /share of the host's 8 open streams \(BERTH_STREAMS\): half of those that other orgs leave/);
    for (let count = 0; count < 2; count += 1) assert.ok('destroySoon' in (await openOn(C, 'org_other')));
    assert.equal(
      (await refusal(`/vms/${C}/ports/${port}`, { headers: { [STREAM_HEADERS.org]: 'org_other' } }))[0],
      429,
    );
    assert.ok('destroySoon' in (await openOn(C, 'org_third')));
  });

  it('refuses invalid labels of a stream', async () => {
    for (const header of Object.values(STREAM_HEADERS)) {
      for (const value of ['', 'a b', 'x'.repeat(65)]) {
        assert.equal(
          (await refusal(`/vms/${A}/ports/${port}`, { headers: { [header]: value } }))[1],
          'invalid_request',
        );
      }
    }
  });

  it('closes by its name, although the guest neither reads nor ends, and frees its place', async () => {
    program.removeAllListeners('connection').on('connection', (socket: Socket) => connections.add(socket.pause()));
    const stream = (await ask(`/vms/${A}/ports/${port}`, { headers: { [STREAM_HEADERS.stream]: 'one' } })) as Socket;
    const chunk = Buffer.alloc(1_048_576);
    while (stream.write(chunk));
    while (connections.size === 0) await once(program, 'connection');
    const [inGuest] = connections;
    assert.ok(inGuest);
    inGuest.on('error', () => undefined);
    const gone = new Promise((resolve) => inGuest.once('close', resolve));
    stream.destroy();
    assert.equal(await closeStreams(['missing', 'one']), 200);
    await Promise.all(Array.from({ length: host.streamLimits.perVm }, () => open()));
    assert.equal(await closeStreams(['one']), 200);
    inGuest.resume().once('end', () => inGuest.destroy());
    await gone;
  });

  it('closes after a time of silence when its caller has ended and the guest does not', async () => {
    await server.close(AbortSignal.abort());
    await serve({ ...BOUNDS, halfOpenMs: 200 });
    program.removeAllListeners('connection').on('connection', (socket: Socket) => {
      connections.add(socket);
      socket.on('error', () => undefined);
      socket.write('data: x');
    });
    const streams = await Promise.all(Array.from({ length: host.streamLimits.perVm }, () => open()));
    await Promise.all(streams.map((stream) => once(stream, 'data')));
    assert.equal((await refusal(`/vms/${A}/ports/${port}`))[1], 'too_many_streams');
    // As the API ends a visit: an end on the unix socket, and nothing else.
    streams.forEach((stream) => stream.destroy());
    let answer = await ask(`/vms/${A}/ports/${port}`);
    while (!('destroySoon' in answer)) {
      answer.resume();
      answer = await ask(`/vms/${A}/ports/${port}`);
    }
  });

  it('is probed by TCP, so that a control plane that vanished is noticed', async () => {
    await server.close(AbortSignal.abort());
    const hostPort = Number(new URL(await serve(BOUNDS, { address: '127.0.0.1', port: 0 })).port);
    const socket = connect({ port: hostPort, host: '127.0.0.1' });
    await once(socket, 'connect');
    const seconds = await secondsToProbe(hostPort, socket.localPort ?? 0);
    assert.ok(seconds <= 20, `${seconds} s`);
    socket.destroy();
  });

  for (const [what, end] of [
    ['a sleep', () => host.lifecycle.sleep(A, { epoch: 2 })],
    ['a destroy', () => host.lifecycle.destroy(A, 2)],
    ['the end of its process', () => host.machine.kill(A)],
    [
      'the stop of the daemon',
      () => Promise.all([server.close(AbortSignal.timeout(60_000)), host.lifecycle.close(AbortSignal.timeout(60_000))]),
    ],
  ] as const) {
    it(`closes at both ends by ${what}`, async () => {
      const stream = await openAndUse();
      const [inGuest] = connections;
      assert.ok(inGuest);
      const ends = Promise.all([closed(stream), once(inGuest, 'close')]);
      await end();
      await ends;
    });
  }

  it('closes before a sleep captures anything, and before a destroy waits for in-flight calls', async () => {
    const stream = await openAndUse();
    const gate = Promise.withResolvers<void>();
    host.driver.onSleep = async () => {
      await closed(stream);
      gate.resolve();
    };
    const asleep = host.lifecycle.sleep(A, { epoch: 2 });
    await gate.promise;
    await asleep;

    await host.lifecycle.wake(A, { epoch: 3, spec: SMALL });
    const next = await openAndUse();
    host.driver.onResize = async (_from, to) => {
      void host.lifecycle.destroy(A, 5).catch(() => undefined);
      await closed(next);
      return to;
    };
    await assert.rejects(host.lifecycle.resize(A, { epoch: 4, size: { vcpu: 2, memoryMib: 2_048, diskGib: 10 } }));
  });

  it('does not open when its VM ends during the opening', async () => {
    program.close();
    const asked = Promise.withResolvers<void>();
    machine().guest.upgrade = () => asked.resolve();
    const refused = refusal(`/vms/${A}/ports/${port}`);
    await asked.promise;
    await host.lifecycle.destroy(A, 2);
    assert.deepEqual((await refused).slice(0, 2), [404, 'vm_not_found']);
  });

  it('is cut after the idle limit and at the age limit', async () => {
    await server.close(AbortSignal.abort());
    await serve({ idleMs: 50, longestMs: 60_000 });
    await closed(await open());
    await server.close(AbortSignal.abort());
    await serve({ idleMs: 60_000, longestMs: 50 });
    const busy = await open();
    busy.on('data', (chunk: Buffer) => busy.write(chunk));
    await closed(busy);
  });
});
