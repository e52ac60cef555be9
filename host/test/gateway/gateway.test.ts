// The guest gateway: its confinement, its death, and root's bounds on what it sends.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { openTerminal } from '@berth/protocol/calls/connections.ts';
import { FILTERED } from '../../../os/test/service-filter-probe.ts';
import { until } from '../../../os/test/until.ts';
import { exec, type GuestExecResult } from '@berth/protocol/calls/exec.ts';
import { readFile as readGuestFile } from '@berth/protocol/calls/files.ts';
import { health } from '@berth/protocol/calls/identity.ts';
import { pino } from 'pino';
import { guestsBehind } from '../../src/gateway/client.ts';
import { FRAME } from '../../src/gateway/frames.ts';
import { GatewayProcess, MODEL_GATEWAY, openGateway } from '../../src/gateway/launch.ts';
import type { GuestClient } from '../../src/guest/client.ts';
import { FAKE_GATEWAY_UID } from '../../src/network/slots/slot.ts';
import { json, ScriptedGuest } from '../vm/scripted-guest.ts';
import { fieldsOf, programOf } from './process-facts.ts';
import { startGateway, type TestGateway } from './ways.ts';

const HEALTHY = { ok: true, version: '1', uptimeSeconds: 1 };
const TRUE = { body: { command: 'true', timeoutSeconds: 60 } };
const FILE = { query: { path: '/code/endless' } };

describe('the guest gateway', () => {
  let started: TestGateway;
  let guest: ScriptedGuest;
  let client: GuestClient;
  before(async () => {
    started = await startGateway();
  });
  after(() => started.close());
  beforeEach(async () => {
    guest = await ScriptedGuest.start();
    client = started.guests.clientOf(guest.endpoint, 'the-secret');
  });
  afterEach(async () => {
    client.close();
    await guest.stop();
  });

  it('has no privilege: own user, no capability, a filter, bounded memory', async () => {
    const pid = await programOf(started.gateway.pid);
    const status = await fieldsOf(pid);
    for (const field of ['Uid', 'Gid']) assert.equal(status.get(field), Array(4).fill(FAKE_GATEWAY_UID).join('\t'));
    assert.equal(status.get('Groups'), '');
    for (const field of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      assert.match(status.get(field) ?? '', /^0+$/);
    assert.equal(status.get('NoNewPrivs'), '1');
    assert.equal(status.get('Seccomp'), '2');
    const limits = await readFile(`/proc/${pid}/limits`, 'utf8');
    assert.match(limits, /^Max data size +1073741824 +1073741824 /m);
    assert.match(limits, /^Max core file size +0 +0 /m);
    assert.equal((await readFile(`/proc/${pid}/oom_score_adj`, 'utf8')).trim(), '500');
  });

  it('runs under the filter of the services, as the kernel applies it to a program in its place', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'berth-probe-'));
    const program = { ...MODEL_GATEWAY, main: '/app/host/test/gateway/probe-program.ts' };
    let outcome = '';
    const probe = new GatewayProcess({
      ...{ folder: join(folder, 'gateway'), uid: FAKE_GATEWAY_UID, log: pino({ level: 'silent' }), program },
      serving: async (socket) => void (outcome = await readFile(`${socket}.outcome`, 'utf8')),
    });
    try {
      await probe.start();
      assert.deepEqual(outcome.trim().split('\n'), FILTERED);
    } finally {
      await probe.close();
      await rm(folder, { recursive: true });
    }
  });

  it('sees no file of the host daemon and no secret in its environment or arguments', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'berth-secret-'));
    try {
      const secret = join(folder, 'host-token');
      await writeFile(secret, 'secret', { mode: 0o600 });
      const pid = await programOf(started.gateway.pid);
      const inside = `/proc/${pid}/root`;
      for (const path of [secret, started.folder, '/etc', '/root', '/var', '/run', '/tmp'])
        assert.ok(!existsSync(`${inside}${path}`), path);
      assert.match(String(await readdir(`${inside}/gateway`)), /^socket-\d+$/);
      const environment = (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0').filter((entry) => entry !== '');
      assert.deepEqual(new Set(environment.map((entry) => entry.split('=', 1)[0])), new Set(['PATH', 'PWD']));
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  /** Kills the gateway, and waits for the next one. */
  async function replaceGateway(): Promise<void> {
    const { pid } = started.gateway;
    process.kill(await programOf(pid), 'SIGKILL');
    await until('another gateway serves', async () => {
      const next = started.gateway.pid;
      return next === null || next === pid ? null : true;
    });
  }

  it('is started again when killed: calls in flight fail, the next succeed', async () => {
    const asked = Promise.withResolvers<void>();
    guest.handler = () => asked.resolve();
    const call = client.call(exec, TRUE);
    call.catch(() => undefined);
    await asked.promise;
    await replaceGateway();
    await assert.rejects(call, { code: 'guest_unreachable' });
    guest.handler = (_request, response) => json(response, 200, HEALTHY);
    assert.deepEqual(await client.call(health, {}), HEALTHY);
  });

  it('fails a stream when killed in the middle of it, and opens the next', async () => {
    guest.handler = (_request, response) => void response.writeHead(200).write('first');
    const stream = await client.stream(readGuestFile, FILE);
    await once(stream, 'readable');
    await replaceGateway();
    await assert.rejects(stream.toArray(), { code: 'guest_unreachable' });
    guest.handler = (_request, response) => void response.end('whole');
    assert.equal(String(Buffer.concat(await (await client.stream(readGuestFile, FILE)).toArray())), 'whole');
  });

  it('holds 768 calls of a guest and 2,000 in all, and serves others of the same guests meanwhile', async () => {
    const others = await Promise.all(Array.from({ length: 9 }, () => ScriptedGuest.start()));
    const clients = [client, ...others.map(({ endpoint }) => started.guests.clientOf(endpoint, 'the-secret'))];
    const held: ServerResponse[] = [];
    for (const one of [guest, ...others]) {
      one.handler = (request, response) => {
        if (request.method === 'POST') held.push(response);
        else json(response, 200, HEALTHY);
      };
    }
    const calls: Promise<GuestExecResult>[] = [];
    for (const [number, one] of clients.entries()) {
      for (let made = 0; made < (number === 0 ? 768 : 137); made += 1) calls.push(one.call(exec, TRUE));
      // The queue of the listener is shorter than all calls.
      await until('the guests hold all calls', () => Promise.resolve(held.length === calls.length || null));
    }
    for (const one of clients) assert.deepEqual(await one.call(health, {}), HEALTHY);
    const result = { exitCode: 0, stdout: '', stderr: '', truncated: false, timedOut: false };
    for (const response of held) json(response, 200, result);
    assert.ok((await Promise.all(calls)).every(({ exitCode }) => exitCode === 0));
    for (const [number, one] of others.entries()) {
      clients[number + 1]?.close();
      await one.stop();
    }
  });

  it('ends a call at the guest when its caller does', async () => {
    const asked = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    guest.handler = (_request, response) => {
      response.once('close', ended.resolve);
      asked.resolve();
    };
    const abort = new AbortController();
    const call = client.call(exec, TRUE, { signal: abort.signal });
    await asked.promise;
    abort.abort(new Error('the caller is gone'));
    await assert.rejects(call, /the caller is gone/);
    await ended.promise;
  });

  it('passes a raw stream on, both ways and half-closed', async () => {
    guest.upgrade = (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: berth-terminal\r\n\r\nhello ');
      socket.on('data', (chunk: Buffer) => socket.write(chunk)).once('end', () => socket.end('!'));
    };
    const stream = await client.open(openTerminal, { query: { tty: 'false', command: 'cat' } });
    stream.end('you');
    assert.equal(String(Buffer.concat(await stream.toArray())), 'hello you!');
  });

  it('serves a guest while the streams of another are not read', async () => {
    const chunk = 'x'.repeat(65_536);
    guest.handler = (_request, response) => {
      const pour = (): void => {
        while (!response.destroyed && response.write(chunk)) {
          // until the buffer is full
        }
      };
      response.on('drain', pour);
      pour();
    };
    const stalled = await Promise.all(Array.from({ length: 64 }, () => client.stream(readGuestFile, FILE)));
    const other = await ScriptedGuest.start();
    other.handler = (_request, response) => json(response, 200, HEALTHY);
    const neighbour = started.guests.clientOf(other.endpoint, 'another-secret');
    try {
      assert.deepEqual(await neighbour.call(health, {}), HEALTHY);
    } finally {
      stalled.forEach((stream) => stream.destroy());
      neighbour.close();
      await other.stop();
    }
  });
});

describe('a guest gateway in the hands of a guest', () => {
  const head = (kind: number, length: number): Buffer => {
    const bytes = Buffer.alloc(5, kind);
    bytes.writeUInt32BE(length, 1);
    return bytes;
  };
  const frame = (kind: number, text: string): Buffer => Buffer.concat([head(kind, text.length), Buffer.from(text)]);
  const lies: [string, (connection: Socket) => void, RegExp][] = [
    ['announces 4 GiB', (connection) => connection.write(head(FRAME.result, 0xffff_ffff)), /exceeds the limit/],
    ['sends no JSON', (connection) => connection.write(frame(FRAME.result, '<html>')), /JSON/],
    ['sends wrong types', (connection) => connection.write(frame(FRAME.result, '{"ok":"yes"}')), /does not match/],
    ['sends an unknown kind', (connection) => connection.write(frame(9, '')), /closed the connection/],
    ['ends within a frame', (connection) => connection.end(head(FRAME.result, 10)), /within a frame/],
    ['invents an error', (connection) => connection.write(frame(FRAME.failure, '{"code":"root"}')), /code/],
  ];
  for (const [what, lie, message] of lies) {
    it(`fails the call when it ${what}`, async () => {
      const folder = await mkdtemp(join(tmpdir(), 'berth-gateway-'));
      const server = createServer((connection) => {
        connection.on('error', () => undefined).once('data', () => lie(connection));
      });
      const path = join(folder, 'socket');
      await new Promise<void>((resolve) => {
        server.listen(path, resolve);
      });
      const guests = guestsBehind({ connect: () => openGateway(path) });
      const client = guests.clientOf({ address: '127.0.0.1', port: 1 });
      try {
        await assert.rejects(client.call(health, {}), { code: 'guest_unreachable', message });
      } finally {
        client.close();
        server.close();
        await rm(folder, { recursive: true });
      }
    });
  }
});
