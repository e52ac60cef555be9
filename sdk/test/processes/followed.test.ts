// Output of a process that is followed over WebSockets.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { WebSocket as NodeWebSocket } from 'ws';
import { untilTrue } from '../../../os/test/until.ts';
import type { ProcessOutput, SandboxProcess, WebSocketConstructor } from '../../src/index.ts';
import type { GuestProcess } from '../guests/guest-process.ts';
import { realWorld, type World } from '../worlds.ts';
import { Faults } from './faults.ts';

let world: World;
before(async () => {
  world = await realWorld();
});
after(() => world.close());

/** A process, its guest's side, the sockets that were opened, and the paths of requests. */
async function followed(): Promise<{
  process: SandboxProcess;
  guest: GuestProcess;
  sockets: NodeWebSocket[];
  requests: string[];
}> {
  const sockets: NodeWebSocket[] = [];
  class Recorded extends NodeWebSocket {
    constructor(...args: ConstructorParameters<typeof NodeWebSocket>) {
      super(...args);
      sockets.push(this);
    }
  }
  const requests: string[] = [];
  const faults = new Faults(world.fetch);
  faults.onRequest = (_method, path) => requests.push(path);
  const client = world.client({ fetch: faults.fetch, WebSocket: Recorded as unknown as WebSocketConstructor });
  const process = await (await client.sandboxes.create({ agent: 'agent_one' })).spawn('serve');
  const guest = world.guests.get(process.sandboxId, process.id);
  assert.ok(guest !== undefined);
  requests.splice(0);
  return { process, guest, sockets, requests };
}

async function next(chunks: AsyncGenerator<ProcessOutput, void>): Promise<ProcessOutput> {
  const { value } = await chunks.next();
  assert.ok(value !== undefined, 'the output has ended');
  return value;
}

test('a steady output takes a request and a WebSocket, which the end of the loop closes', async () => {
  const { process, guest, sockets, requests } = await followed();
  const chunks = process.output();
  let text = '';
  for (let line = 0; line < 60; line += 1) {
    const chunk = next(chunks);
    guest.write('stdout', `${line}\n`);
    text += (await chunk).text;
  }
  assert.equal(text, Array.from({ length: 60 }, (_, line) => `${line}\n`).join(''));
  assert.deepEqual([requests.length, sockets.length], [1, 1], requests.join());
  await chunks.return();
  await untilTrue('it is closed', () => sockets[0]?.readyState === NodeWebSocket.CLOSED);

  const whole = process.output();
  guest.end();
  for await (const { cursor } of whole) assert.match(cursor, /^\d+\.0$/);
});

test('each byte arrives once, though connections break', async () => {
  const { process, guest, sockets } = await followed();
  const text = Array.from({ length: 400 }, (_, line) => `${line} Zeile für Zeile\n`).join('');
  const bytes = Buffer.from(text);
  let sent = 0;
  const write = (length: number): void => {
    // Anywhere, also inside a character.
    guest.write('stdout', bytes.subarray(sent, sent + length));
    sent += length;
  };
  let received = '';
  write(7);
  for await (const chunk of process.output()) {
    assert.ok(!chunk.text.includes('\ufffd'), chunk.text);
    assert.equal(chunk.offset, Buffer.byteLength(received));
    received += chunk.text;
    if (received.length === text.length) break;
    if (sent < bytes.length) write(97);
    if (sent % 5 === 0) sockets.at(-1)?.terminate();
  }
  assert.equal(received, text);
  assert.ok(sockets.length > 3, `${sockets.length} connections`);
});

test('without WebSockets, requests follow the output', async () => {
  const { process, guest } = await followed();
  const none = function (): never {
    throw new TypeError('no WebSocket here');
  } as unknown as WebSocketConstructor;
  const client = world.client({ WebSocket: none });
  const same = await (await client.sandboxes.get(process.sandboxId)).processes.get(process.id);
  guest.write('stdout', 'one');
  const chunks = same.output();
  assert.equal((await next(chunks)).text, 'one');
  const second = next(chunks);
  guest.write('stdout', 'two');
  assert.equal((await second).text, 'two');
  guest.end();
  assert.equal((await chunks.next()).done, true);
});
