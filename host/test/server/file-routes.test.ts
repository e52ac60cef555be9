// File calls through the daemon's HTTP: passed to a scripted guest, or refused before that.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { FILE_WRITE_BYTES } from '@berth/protocol/files.ts';
import { hostError } from '@berth/protocol/host.ts';
import { HostTokens } from '../../src/server/host-tokens.ts';
import type { HostServer } from '../../src/server/server.ts';
import { LifecycleFixture, SMALL, vmIdOf } from '../vm/lifecycle/lifecycle-fixture.ts';
import { json, type ScriptedGuest } from '../vm/scripted-guest.ts';
import { serverOf } from './served-host.ts';

const A = vmIdOf('a');
const TOKEN = 't'.repeat(40);

describe('file calls through a host daemon', () => {
  let host: LifecycleFixture;
  let server: HostServer;
  let socketPath: string;
  let agent: Agent;
  beforeEach(async () => {
    host = await LifecycleFixture.start();
    socketPath = join(host.root, 'host.sock');
    server = serverOf(host, new HostTokens([TOKEN]));
    await server.listen({ socket: socketPath, uid: null, gid: null });
    agent = new Agent({ keepAlive: true });
    await host.lifecycle.create(A, { epoch: 1, spec: SMALL });
  });
  afterEach(async () => {
    agent.destroy();
    await server.close(AbortSignal.abort());
    await host.stop();
  });

  const guest = (): ScriptedGuest => host.guest(A);

  async function open(
    method: string,
    path: string,
    body?: Buffer,
    headers: Record<string, string | number> = {},
  ): Promise<IncomingMessage> {
    const request = httpRequest({
      socketPath,
      agent,
      method,
      path,
      headers: { authorization: `Bearer ${TOKEN}`, ...headers },
    });
    request.on('error', () => undefined);
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return response;
  }

  async function refusalOf(
    response: IncomingMessage,
  ): Promise<{ status: number; code: string; errno?: string | undefined }> {
    const { code, errno } = hostError.parse(JSON.parse(Buffer.concat(await response.toArray()).toString())).error;
    return { status: response.statusCode ?? 0, code, ...(errno === undefined ? {} : { errno }) };
  }

  it('passes a file, a listing and a write through, with the path unchanged', async () => {
    const path = '/code/a b\n&é';
    const bytes = Buffer.from([0, 1, 255, 10]);
    guest().handler = (_request, response) => void response.end(bytes);
    const query = new URLSearchParams({ path }).toString();
    for (const route of [`/vms/${A}/file?${query}`, `/vms/${A}/files?${query}&depth=5`]) {
      const response = await open('GET', route);
      assert.deepEqual([response.statusCode, response.headers['content-type']], [200, 'application/octet-stream']);
      assert.deepEqual(Buffer.concat(await response.toArray()), bytes);
      assert.equal(new URL(guest().requests.at(-1)?.url ?? '', 'http://guest').searchParams.get('path'), path);
    }
    const received: Buffer[] = [];
    guest().handler = (request, response) => {
      request.on('data', (chunk: Buffer) => received.push(chunk));
      request.once('end', () => json(response, 200, { size: FILE_WRITE_BYTES }));
    };
    const written = await open('PUT', `/vms/${A}/file?${query}`, Buffer.alloc(FILE_WRITE_BYTES, 'ä'));
    assert.deepEqual(JSON.parse(Buffer.concat(await written.toArray()).toString()), { size: FILE_WRITE_BYTES });
    assert.ok(Buffer.concat(received).equals(Buffer.alloc(FILE_WRITE_BYTES, 'ä')));
  });

  it('refuses requests outside the protocol before the guest gets them', async () => {
    const before = guest().requests.length;
    for (const [method, path, code] of [
      ['GET', `/vms/${A}/file`, 'invalid_request'],
      ['GET', `/vms/${A}/file?path=relative`, 'invalid_request'],
      ['GET', `/vms/${A}/file?path=/a%00`, 'invalid_request'],
      ['GET', `/vms/${A}/file?path=/${'a'.repeat(5_000)}`, 'invalid_request'],
      ['GET', `/vms/${A}/file?path=/a&more=1`, 'invalid_request'],
      ['GET', `/vms/${A}/files?path=/`, 'invalid_request'],
      ['GET', `/vms/${A}/files?path=/&depth=0`, 'invalid_request'],
      ['GET', `/vms/${A}/files?path=/&depth=6`, 'invalid_request'],
      ['GET', `/vms/${vmIdOf('b')}/file?path=/a`, 'vm_not_found'],
    ] as const)
      assert.equal((await refusalOf(await open(method, path))).code, code, path);

    const chunked = await open('PUT', `/vms/${A}/file?path=/a`, Buffer.from('x'), { 'transfer-encoding': 'chunked' });
    assert.equal((await refusalOf(chunked)).code, 'invalid_request');
    const tooLong = await open('PUT', `/vms/${A}/file?path=/a`, Buffer.alloc(FILE_WRITE_BYTES + 1));
    assert.deepEqual(await refusalOf(tooLong), { status: 413, code: 'file_too_large' });
    assert.equal(guest().requests.length, before);
  });

  it('returns the guest’s refusal with its code, even one sent before the content arrived', async () => {
    guest().handler = (_request, response) =>
      json(response, 500, { error: { message: 'no', code: 'file_system_error', errno: 'ESTALE' } });
    const expected = { status: 500, code: 'file_system_error', errno: 'ESTALE' };
    assert.deepEqual(await refusalOf(await open('GET', `/vms/${A}/file?path=/a`)), expected);
    assert.deepEqual(
      await refusalOf(await open('PUT', `/vms/${A}/file?path=/a`, Buffer.alloc(FILE_WRITE_BYTES))),
      expected,
    );
  });

  it('reports a broken guest that disconnects in the middle of a write', async () => {
    guest().handler = (request) => void request.once('data', () => request.socket.destroy());
    const response = await open('PUT', `/vms/${A}/file?path=/a`, Buffer.alloc(FILE_WRITE_BYTES));
    assert.deepEqual(await refusalOf(response), { status: 502, code: 'guest_unreachable' });
  });

  it('disconnects the caller when the guest breaks off in the middle of a file', async () => {
    guest().handler = (request, response) => {
      response.writeHead(200, { 'content-length': 1_000 });
      response.write('half', () => request.socket.destroy());
    };
    const response = await open('GET', `/vms/${A}/file?path=/a`);
    await assert.rejects(response.toArray(), { code: 'ECONNRESET' });
  });

  it('refuses calls for a VM that is not running', async () => {
    await host.lifecycle.sleep(A, { epoch: 2 });
    assert.deepEqual(await refusalOf(await open('GET', `/vms/${A}/file?path=/a`)), {
      status: 409,
      code: 'vm_not_running',
    });
  });
});
