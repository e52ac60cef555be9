import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { z } from 'zod';
import { openQmp, QmpError, type QmpCall, type QmpEvent } from '../../../../src/vm/qemu/machine/qmp.ts';

const GREETING = '{"QMP": {"version": {}, "capabilities": []}}\r\n';
const CALL = { signal: new AbortController().signal, deadlineMs: 2_000 };

/** Plays QEMU: one response per line. */
type Answers = (command: { execute: string; id: number; arguments?: unknown }, socket: Socket) => void;

async function serve(context: TestContext, answers: Answers, greeting = GREETING): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-qmp-'));
  const path = join(folder, 'qmp');
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    // The client may disconnect at any time.
    socket.on('error', () => sockets.delete(socket));
    socket.write(greeting);
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
        const command = JSON.parse(text.slice(0, end)) as { execute: string; id: number };
        text = text.slice(end + 1);
        if (command.execute === 'qmp_capabilities') socket.write(`{"return": {}, "id": ${command.id}}\r\n`);
        else answers(command, socket);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  context.after(async () => {
    for (const socket of sockets) socket.destroy();

    await new Promise((resolve) => server.close(resolve));
    await rm(folder, { recursive: true });
  });
  return path;
}

const ignore = (): void => undefined;

test('a command resolves with the parsed response of QEMU', async (context) => {
  const path = await serve(context, (command, socket) =>
    socket.write(`{"return": {"status": "running"}, "id": ${command.id}}\r\n`),
  );
  const session = await openQmp(path, ignore, CALL);
  assert.deepEqual(await session.command('query-status', undefined, z.object({ status: z.string() }), CALL), {
    status: 'running',
  });
  session.close();
});

test('responses match their commands when out of order and in pieces', async (context) => {
  const held: number[] = [];
  const path = await serve(context, (command, socket) => {
    held.push(command.id);
    if (held.length === 2) {
      const text = held
        .reverse()
        .map((id) => `{"return": ${id}, "id": ${id}}\r\n`)
        .join('');
      socket.write(text.slice(0, 10));
      setImmediate(() => socket.write(text.slice(10)));
    }
  });
  const session = await openQmp(path, ignore, CALL);
  const [first, second] = await Promise.all([
    session.command('a', undefined, z.number(), CALL),
    session.command('b', undefined, z.number(), CALL),
  ]);
  assert.equal(second, first + 1);
  session.close();
});

test('a refusal names the command and quotes QEMU', async (context) => {
  const path = await serve(context, (command, socket) =>
    socket.write(`{"error": {"class": "GenericError", "desc": "no such device"}, "id": ${command.id}}\r\n`),
  );
  const session = await openQmp(path, ignore, CALL);
  await assert.rejects(
    session.command('device_del', { id: 'x' }, z.unknown(), CALL),
    new QmpError('device_del: no such device'),
  );
  session.close();
});

test('events are distinguished from responses', async (context) => {
  const path = await serve(context, (command, socket) =>
    socket.write(`{"event": "SHUTDOWN", "data": {"reason": "guest-reset"}}\r\n{"return": {}, "id": ${command.id}}\r\n`),
  );
  const events: QmpEvent[] = [];
  const session = await openQmp(path, (event) => events.push(event), CALL);
  await session.command('stop', undefined, z.unknown(), CALL);
  assert.deepEqual(events, [{ name: 'SHUTDOWN', data: { reason: 'guest-reset' } }]);
  session.close();
});

test('a response of an unexpected shape is an error, not a value', async (context) => {
  const path = await serve(context, (command, socket) =>
    socket.write(`{"return": {"status": 7}, "id": ${command.id}}\r\n`),
  );
  const session = await openQmp(path, ignore, CALL);
  await assert.rejects(session.command('query-status', undefined, z.object({ status: z.string() }), CALL), QmpError);
  session.close();
});

test('a command without a response ends at its deadline, or at once when aborted', async (context) => {
  const path = await serve(context, ignore);
  const session = await openQmp(path, ignore, CALL);
  await assert.rejects(
    session.command('query-status', undefined, z.unknown(), { ...CALL, deadlineMs: 30 }),
    /no response from QEMU within 0.03 s/,
  );
  const abort = new AbortController();
  const under = session.command('query-status', undefined, z.unknown(), { signal: abort.signal });
  abort.abort(new Error('overtaken'));
  await assert.rejects(under, /overtaken/);
  session.close();
});

test('a QEMU that sends an endless line is disconnected, and waiting callers get the error', async (context) => {
  const path = await serve(context, (_command, socket) => socket.write('x'.repeat(600_000)));
  const session = await openQmp(path, ignore, CALL);
  await assert.rejects(
    session.command('query-status', undefined, z.unknown(), CALL),
    /a line of more than 524288 bytes/,
  );
  assert.match(await session.closed, /a line of more than/);
});

test('a QEMU that floods with events is disconnected; a burst is accepted', async (context) => {
  const event = '{"event": "ACPI_DEVICE_OST", "data": {}}\r\n';
  const path = await serve(context, (command, socket) => {
    socket.write(event.repeat(command.execute === 'a-burst' ? 1_000 : 50_000));
    socket.write(`{"return": {}, "id": ${command.id}}\r\n`);
  });
  let events = 0;
  const session = await openQmp(path, () => (events += 1), { ...CALL, deadlineMs: 20_000 });
  await session.command('a-burst', undefined, z.unknown(), { ...CALL, deadlineMs: 20_000 });
  assert.equal(events, 1_000);
  await assert.rejects(
    session.command('a-flood', undefined, z.unknown(), { ...CALL, deadlineMs: 20_000 }),
    /unsolicited bytes a second/,
  );
  assert.match(await session.closed, /unsolicited bytes a second/);
  assert.ok(events < 51_000, `${events} events came through`);
});

test('a QEMU that does not speak QMP is disconnected', async (context) => {
  const path = await serve(context, ignore, 'HTTP/1.1 200 OK\r\n');
  await assert.rejects(openQmp(path, ignore, CALL), /not QMP/);
});

test('a command counts as sent when QEMU may have it, and not before', async (context) => {
  const session = await openQmp(await serve(context, ignore), ignore, CALL);
  const sent: string[] = [];
  const attempt = (what: string, call: Partial<QmpCall>): Promise<unknown> =>
    session.command('cont', undefined, z.unknown(), { ...CALL, onSent: () => sent.push(what), ...call });
  await assert.rejects(attempt('when it is given up', { signal: AbortSignal.abort() }), { name: 'AbortError' });
  await assert.rejects(attempt('without an answer', { deadlineMs: 10 }), QmpError);
  session.close();
  await assert.rejects(attempt('when the session is over', {}), QmpError);
  assert.deepEqual(sent, ['without an answer']);
});

test('commands fail once the connection is closed', async (context) => {
  const path = await serve(context, (_command, socket) => socket.destroy());
  const session = await openQmp(path, ignore, CALL);
  await assert.rejects(session.command('quit', undefined, z.unknown(), CALL), QmpError);
  await assert.rejects(session.command('quit', undefined, z.unknown(), CALL), QmpError);
});

test('a socket that never appears ends the wait at its deadline', async () => {
  await assert.rejects(
    openQmp(join(tmpdir(), 'berth-no-such-socket'), ignore, { ...CALL, deadlineMs: 30 }),
    /did not open its control socket/,
  );
});
