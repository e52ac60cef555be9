// The host client against a server that works, misbehaves or is absent.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { EXEC_RESPONSE_BYTES } from '@berth/protocol/calls/exec.ts';
import { EXEC_OUTPUT_BYTES } from '@berth/protocol/guest-limits.ts';
import { SharedCapacity } from '@berth/protocol/shared-capacity.ts';
import { HostClient } from '../../src/hosts/client.ts';
import { HostError } from '../../src/hosts/error.ts';
import { untilTrue } from '../../../os/test/until.ts';

const VM = 'sbx_aaaaaaaaaaaaaaaaaaaaaaaa';
const SPEC = { vcpu: 1, memoryMib: 1024, diskGib: 10, hostname: 'a', sshAuthorizedKeys: [] };
const RUNNING = { id: VM, epoch: 1, status: 'running' };
const RESULT = { exitCode: 3, stdout: 'out', stderr: 'err', truncated: false, timedOut: false };
const ROOM = { vcpu: 1, memoryMib: 1_024, diskGib: 10 };
const EXEC = { command: 'true', timeoutSeconds: 10 };

let server: http.Server;
let folder: string;
let client: HostClient;
let answer: (request: http.IncomingMessage, response: http.ServerResponse) => void;
const sockets = new Set<Socket>();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-client-'));
  server = http.createServer((request, response) => answer(request, response));
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(join(folder, 's'));
  await once(server, 'listening');
  client = new HostClient({ url: `unix:${join(folder, 's')}`, token: () => 'secret', streams: new SharedCapacity(8) });
});

afterEach(async () => {
  client.close();
  server.closeAllConnections();
  if (server.listening) {
    server.close();
    await once(server, 'close');
  }
  await rm(folder, { recursive: true });
});

const json = (status: number, body: unknown): typeof answer => {
  return (request, response) => {
    request
      .resume()
      .on('end', () => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)));
  };
};
const failsWith = (code: string, message = /./) => {
  return (error: unknown): boolean => error instanceof HostError && error.code === code && message.test(error.message);
};

test('a create is a PUT with the epoch, the spec and the bearer token', async () => {
  let seen: unknown;
  answer = (request, response) => {
    let body = '';
    request.on('data', (chunk) => (body += String(chunk)));
    request.on('end', () => {
      seen = [request.method, request.url, request.headers.authorization, JSON.parse(body)];
      response.end(JSON.stringify(RUNNING));
    });
  };
  assert.deepEqual(await client.createVm(VM, { epoch: 1, spec: SPEC }), RUNNING);
  assert.deepEqual(seen, ['PUT', `/vms/${VM}`, 'Bearer secret', { epoch: 1, spec: SPEC }]);
});

test('a destroy names its epoch in the query', async () => {
  let seen = '';
  answer = (request, response) => {
    seen = `${request.method} ${request.url}`;
    response.end(JSON.stringify({ id: VM, epoch: 7, status: 'destroyed' }));
  };
  assert.equal((await client.destroyVm(VM, 7)).status, 'destroyed');
  assert.equal(seen, `DELETE /vms/${VM}?epoch=7`);
});

for (const [verb, body, run] of [
  ['sleep', { epoch: 2 }, () => client.sleepVm(VM, { epoch: 2 })],
  ['wake', { epoch: 3, spec: SPEC }, () => client.wakeVm(VM, { epoch: 3, spec: SPEC })],
  [
    'resize',
    { epoch: 4, size: { vcpu: 2, memoryMib: 2_048, diskGib: 10 } },
    () => client.resizeVm(VM, { epoch: 4, size: { vcpu: 2, memoryMib: 2_048, diskGib: 10 } }),
  ],
] as const) {
  test(`a ${verb} is a POST with its epoch, and returns the VM fields of the protocol`, async () => {
    const view = { ...RUNNING, spec: SPEC, woke: { from: 'disk', reason: 'a hash differs' } };
    let seen: unknown;
    answer = (request, response) => {
      let text = '';
      request.on('data', (chunk) => (text += String(chunk)));
      request.on('end', () => {
        seen = [request.method, request.url, JSON.parse(text)];
        response.end(JSON.stringify(view));
      });
    };
    assert.deepEqual(await run(), view);
    assert.deepEqual(seen, ['POST', `/vms/${VM}/${verb}`, body]);
  });
}

test('a TCP host is reached at its http address', async () => {
  answer = json(200, { vms: [RUNNING] });
  server.close();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const overTcp = new HostClient({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: () => 'secret',
    streams: new SharedCapacity(8),
  });
  assert.deepEqual(await overTcp.listVms(), [RUNNING]);
  overTcp.close();
});

test('an unsupported address is refused at once', () => {
  assert.throws(
    () => new HostClient({ url: 'https://host', token: () => 'secret', streams: new SharedCapacity(8) }),
    /unix:\/path or http:\/\/address:port/,
  );
});

test('a refusal keeps its code, its message and its shortage', async () => {
  const shortage = { resource: 'memoryMib' as const, requested: 4096, available: 1024 };
  answer = json(507, { error: { code: 'insufficient_capacity', message: 'no memory', shortage } });
  await assert.rejects(client.createVm(VM, { epoch: 1, spec: SPEC }), (error) => {
    assert.ok(error instanceof HostError);
    assert.deepEqual(
      [error.code, error.message, error.shortage, error.transient],
      ['insufficient_capacity', 'no memory', shortage, false],
    );
    return true;
  });
});

test('a response with another shape, status or code, or without JSON, is invalid_answer', async () => {
  const bad: (typeof answer)[] = [
    json(200, { id: VM, epoch: 'one', status: 'running' }),
    json(404, {}),
    json(500, { error: { code: 'gremlins', message: 'x' } }),
    (_request, response) => response.end('<html>'),
  ];
  for (answer of bad) await assert.rejects(client.createVm(VM, { epoch: 1, spec: SPEC }), failsWith('invalid_answer'));
});

test('an absent host is host_unreachable, which is retryable', async () => {
  const absent = new HostClient({
    url: `unix:${join(folder, 'absent')}`,
    token: () => 'secret',
    streams: new SharedCapacity(8),
  });
  await assert.rejects(
    absent.info(),
    (error) => failsWith('host_unreachable', /ENOENT/)(error) && (error as HostError).transient,
  );
});

test('no response before the deadline is host_timeout and closes the connection', async () => {
  const closed = new Promise<void>((resolve) => {
    answer = (request) => request.socket.on('close', resolve);
  });
  await assert.rejects(client.info({ deadlineMs: 30 }), failsWith('host_timeout', /within 30 ms/));
  await closed;
});

test('a create waits for a create in flight as long as the host allows', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const info = {
    ...{ hostId: 'h', startId: 's', driver: 'fake', accelerator: 'none', qemuVersion: null, templateId: null },
    ...{ capacity: ROOM, reserved: ROOM, largest: ROOM, pool: { ready: 0, target: 0 } },
  };
  for (const [createDeadlineMs, created] of [
    [undefined, false],
    [60_000, false],
    [3_600_000, true],
  ] as const) {
    let creates = 0;
    answer = (request, response) => {
      if (request.method === 'GET') {
        json(200, { ...info, createDeadlineMs })(request, response);
        return;
      }
      creates += 1;
      if (creates === 1) t.mock.timers.tick(90_000);
      else json(200, RUNNING)(request, response);
    };
    const create = client.createVm(VM, { epoch: 1, spec: SPEC });
    if (created) assert.deepEqual(await create, RUNNING);
    else await assert.rejects(create, failsWith('host_timeout', /within 90000 ms/));
    assert.equal(creates, created ? 2 : 1);
  }
});

test("the caller's signal aborts an exec with its reason and closes the connection", async () => {
  const caller = new AbortController();
  const closed = new Promise<void>((resolve) => {
    answer = (request, response) => {
      request.socket.on('close', resolve);
      response.flushHeaders();
      caller.abort(new Error('the client hung up'));
    };
  });
  await assert.rejects(client.exec(VM, EXEC, { signal: caller.signal }), /the client hung up/);
  await closed;
  await assert.rejects(client.exec(VM, EXEC, { signal: caller.signal }), /the client hung up/);
});

test('an exec accepts white space before its result', async () => {
  answer = (_request, response) => {
    response.flushHeaders();
    response.write(' ');
    setImmediate(() => {
      response.write('  ');
      response.end(JSON.stringify(RESULT));
    });
  };
  assert.deepEqual(await client.exec(VM, EXEC), RESULT);
});

test('an exec cut off after its headers fails with the sent reason or host_unreachable', async () => {
  answer = (_request, response) => {
    response.write(' ');
    response.write(
      JSON.stringify({ error: { code: 'guest_unreachable', message: 'the guest closed the connection' } }),
      () => response.destroy(),
    );
  };
  await assert.rejects(client.exec(VM, EXEC), failsWith('guest_unreachable', /the guest closed/));
  answer = (_request, response) => {
    response.write(' ');
    response.write(JSON.stringify(RESULT), () => response.destroy());
  };
  await assert.rejects(client.exec(VM, EXEC), failsWith('host_unreachable', /middle of the response/));
});

test('exec outputs at the size limit are accepted; longer outputs and bodies are refused', async () => {
  // Six bytes per character in JSON.
  const output = '\u0001'.repeat(EXEC_OUTPUT_BYTES);
  const longest = { ...RESULT, stdout: output, stderr: output };
  answer = json(200, longest);
  assert.deepEqual(await client.exec(VM, EXEC), longest);
  for (const name of ['stdout', 'stderr']) {
    answer = json(200, { ...RESULT, [name]: 'x'.repeat(EXEC_OUTPUT_BYTES + 1) });
    await assert.rejects(client.exec(VM, EXEC), failsWith('invalid_answer', new RegExp(name)));
  }
  answer = json(200, { ...RESULT, more: 'x'.repeat(EXEC_RESPONSE_BYTES) });
  await assert.rejects(client.exec(VM, EXEC), failsWith('invalid_answer', /longer than/));
});

test('calls share a connection; one closed while idle is replaced transparently', async () => {
  answer = json(200, { vms: [] });
  await client.listVms();
  await client.listVms();
  assert.equal(sockets.size, 1);
  // The next request finds its pooled connection reset before any response byte.
  let reset = false;
  answer = (request, response) => {
    if (reset) {
      json(200, { vms: [RUNNING] })(request, response);
      return;
    }
    reset = true;
    request.socket.destroy();
  };
  assert.deepEqual(await client.listVms(), [RUNNING]);
});

test('execs share a connection, and one whose connection is reset is never sent twice', async () => {
  answer = json(200, RESULT);
  await client.exec(VM, EXEC);
  await client.exec(VM, EXEC);
  assert.equal(sockets.size, 1);
  let execs = 0;
  answer = (request) => {
    execs += 1;
    request.socket.destroy();
  };
  await assert.rejects(client.exec(VM, EXEC), failsWith('host_unreachable'));
  assert.equal(execs, 1);
});

test('an idle connection of an exec is closed before the host closes it', async () => {
  answer = json(200, RESULT);
  await client.exec(VM, EXEC);
  await untilTrue('the connection is closed', () => sockets.size === 0);
});

test('closing the client aborts calls in flight', async () => {
  answer = () => client.close();
  await assert.rejects(client.info(), failsWith('host_unreachable'));
});

test('files and listings are read byte for byte, with the path unchanged', async () => {
  const bytes = Buffer.from([0, 255, 10]);
  const path = '/code/a b&é\n';
  const seen: [string | null, string | null][] = [];
  answer = (request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://host');
    seen.push([searchParams.get('path'), searchParams.get('depth')]);
    response.end(bytes);
  };
  assert.deepEqual(await client.readFile(VM, path), bytes);
  assert.deepEqual(await client.listFiles(VM, path, 4), bytes);
  assert.deepEqual(seen, [
    [path, null],
    [path, '4'],
  ]);
});

test('a file received byte by byte is reassembled', async () => {
  const bytes = Buffer.from(Array.from({ length: 40_000 }, (_, at) => at % 251));
  answer = (_request, response) => {
    response.writeHead(200, { 'transfer-encoding': 'chunked' }).flushHeaders();
    const pieces = [...bytes].map((byte) =>
      Buffer.concat([Buffer.from('1\r\n'), Buffer.from([byte]), Buffer.from('\r\n')]),
    );
    response.socket?.write(Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')]));
  };
  assert.ok((await client.readFile(VM, '/a')).equals(bytes));
});

// A host that closes after its response could do so while the caller still ends its request: the
// call would fail although it was carried out.
test("a write sends the bytes on its own connection, closes it itself and returns the guest's result", async () => {
  const received: Buffer[] = [];
  answer = (request, response) => {
    assert.deepEqual(
      [request.method, request.headers['content-type'], request.headers['connection']],
      ['PUT', 'application/octet-stream', 'keep-alive'],
    );
    request.on('data', (chunk: Buffer) => received.push(chunk));
    request.once('end', () => response.end('{"size":3}'));
  };
  assert.deepEqual(await client.writeFile(VM, { path: '/a' }, Buffer.from([0, 255, 10])), { size: 3 });
  assert.deepEqual(Buffer.concat(received), Buffer.from([0, 255, 10]));
  await untilTrue('the connection is closed', () => sockets.size === 0);
});

test("a refused file call has the guest's error code and name", async () => {
  answer = json(500, { error: { code: 'file_system_error', message: 'no', errno: 'EIO' } });
  for (const call of [
    client.readFile(VM, '/a'),
    client.listFiles(VM, '/a', 1),
    client.writeFile(VM, { path: '/a' }, Buffer.alloc(1)),
  ])
    await assert.rejects(call, (error: HostError) => error.code === 'file_system_error' && error.errno === 'EIO');
});

test('a truncated file and a malformed refusal are errors', async () => {
  for (const text of ['half', JSON.stringify({ error: { code: 'file_not_found', message: 'a lie' } })]) {
    answer = (request, response) => {
      response.writeHead(200, { 'content-length': 1_000 });
      response.write(text, () => request.socket.destroy());
    };
    await assert.rejects(client.readFile(VM, '/a'), failsWith('host_unreachable', /middle of the response/));
  }
  answer = json(404, { error: 'something else' });
  await assert.rejects(client.readFile(VM, '/a'), failsWith('invalid_answer', /status 404/));
});
