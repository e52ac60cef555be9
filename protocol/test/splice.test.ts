// Joined streams after one direction has ended: the other lasts while bytes move.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { splice, type SpliceBounds } from '../src/splice.ts';

const open: { destroy(): unknown }[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.destroy();
});

/** Both ends of a TCP connection. */
async function pair(): Promise<[Socket, Socket]> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const far = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true });
  const [near] = (await once(server, 'connection')) as [Socket];
  server.close();
  for (const socket of [far, near]) socket.on('error', () => undefined);
  open.push(far, near);
  return [far, near];
}

/** A caller and an app, joined. */
async function joined(bounds: SpliceBounds): Promise<{ caller: Socket; app: Socket; end: Promise<string> }> {
  const [[caller, one], [app, other]] = await Promise.all([pair(), pair()]);
  return { caller, app, end: splice(one, other, bounds) };
}

for (const ends of ['caller', 'app'] as const) {
  test(`a stream whose ${ends} has ended is cut at both ends after a time of silence`, async () => {
    const { caller, app, end } = await joined({ halfOpenMs: 200 });
    const [gone, left] = ends === 'caller' ? [caller, app] : [app, caller];
    gone.end('last words');
    left.resume();
    assert.equal(await end, 'half_open');
    left.write('too late');
    await new Promise((resolve) => left.once('close', resolve));
  });
}

test('the time of silence after a direction ended is 30 s unless it is set', async () => {
  const [[caller, one], [, other]] = await Promise.all([pair(), pair()]);
  const end = splice(one, other);
  assert.equal(one.timeout, undefined);
  caller.end();
  await once(one, 'end');
  assert.deepEqual([one.timeout, other.timeout], [30_000, 30_000]);
  one.destroy();
  await end;
});

test('the open direction of a half-closed stream lasts while bytes move, and both ends close it', async () => {
  const { caller, app, end } = await joined({ halfOpenMs: 300 });
  caller.end();
  let received = 0;
  caller.on('data', ({ length }: Buffer) => (received += length));
  const beganAt = performance.now();
  while (performance.now() - beganAt < 1_000) {
    app.write('x');
    await delay(50);
  }
  app.end('y');
  assert.equal(await end, 'ended');
  assert.ok(received > 5);
});

test('a slow reader gets everything from a side that ended long before', async () => {
  const { caller, app, end } = await joined({ halfOpenMs: 400 });
  caller.end();
  const sent = 32 * 1_048_576;
  app.end(Buffer.alloc(sent));
  let received = 0;
  const beganAt = performance.now();
  for await (const part of caller as AsyncIterable<Buffer>) {
    received += part.length;
    await delay(4);
  }
  assert.ok(performance.now() - beganAt > 1_000);
  assert.equal(received, sent);
  assert.equal(await end, 'ended');
});

test('a stream that nobody has ended is not limited by that silence', async () => {
  const { caller, app, end } = await joined({ halfOpenMs: 50, idleMs: 600 });
  const beganAt = performance.now();
  caller.write('x');
  app.write('y');
  assert.equal(await end, 'idle');
  assert.ok(performance.now() - beganAt > 500);
});
