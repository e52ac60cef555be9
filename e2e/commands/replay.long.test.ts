// The output of a process at full speed, followed through random disconnects, kills of each daemon,
// sleeps and wakes: every byte arrives once and in order, or is reported as lost.
// BERTH_REPLAY_SECONDS: how long, by default 90. BERTH_REPLAY_SEED: of the disturbances.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Berth, type Sandbox, type WebSocketConstructor } from '@berth/sdk';
import { WebSocket } from 'ws';
import { enterPrivateHost } from '../../host/test/vm/private-host.ts';
import { untilTrue } from '../../os/test/until.ts';
import { awakeSandbox, destroySandbox } from '../world/client.ts';
import { GUEST_DAEMON } from '../world/guest-daemon.ts';
import { Parts } from '../world/parts.ts';
import { Random } from '../world/random.ts';

enterPrivateHost();

const SECONDS = Number(process.env['BERTH_REPLAY_SECONDS'] ?? 90);
const SEED = process.env['BERTH_REPLAY_SEED'] ?? String(Date.now() % 1_000_000);
/** Bytes of a line, which is its number modulo 10 million. */
const LINE = 8;
const LINES = 10_000_000;

let parts: Parts;
let sandbox: Sandbox;
const sockets = new Set<WebSocket>();

class Recorded extends WebSocket {
  constructor(...args: ConstructorParameters<typeof WebSocket>) {
    super(...args);
    sockets.add(this);
    this.once('close', () => sockets.delete(this));
  }
}

before(async () => {
  parts = await Parts.start();
  const { url, token } = parts.caller;
  const { id } = await awakeSandbox(parts.caller);
  const client = new Berth({ url, apiKey: token, WebSocket: Recorded as unknown as WebSocketConstructor });
  sandbox = await client.sandboxes.get(id);
});

after(async () => {
  try {
    if (sandbox !== undefined) await destroySandbox(parts.caller, sandbox.id);
    await parts?.stop();
  } finally {
    await parts?.remove();
  }
});

function expectedAt(offset: number, length: number): string {
  const first = Math.floor(offset / LINE);
  const count = Math.ceil(length / LINE) + 1;
  const lines = Array.from(
    { length: count },
    (_, index) => `${String((first + index) % LINES).padStart(LINE - 1, '0')}\n`,
  );
  return lines.join('').slice(offset % LINE, (offset % LINE) + length);
}

test('every byte arrives once and in order, or is reported as lost', async (t) => {
  const random = new Random(SEED);
  const process = await sandbox.spawn(`while seq -w 0 ${LINES - 1}; do :; done`, { outputBytes: 8_388_608 });
  const figures = { bytes: 0, lostBytes: 0, gaps: 0, disconnects: 0, kills: 0, sleeps: 0 };
  let failure: unknown;
  const reading = (async () => {
    let offset = 0;
    for await (const chunk of process.output()) {
      assert.equal(chunk.offset, offset + chunk.lostBytes, 'a chunk continues behind the one before');
      assert.equal(chunk.text, expectedAt(chunk.offset, chunk.bytes.length));
      offset = chunk.offset + chunk.bytes.length;
      figures.bytes += chunk.bytes.length;
      figures.lostBytes += chunk.lostBytes;
      if (chunk.lostBytes > 0) figures.gaps += 1;
    }
    return offset;
  })();
  reading.catch((error: unknown) => (failure = error));
  const grows = async (): Promise<void> => {
    const { bytes } = figures;
    await untilTrue('output goes on', () => failure !== undefined || figures.bytes > bytes);
    if (failure !== undefined) throw failure;
  };
  const restart = async (part: 'host' | 'api'): Promise<void> => {
    await parts.kill(part);
    await parts.run(part);
    figures.kills += 1;
  };
  const disconnect = async (): Promise<void> => {
    for (const socket of sockets) socket.terminate();
    figures.disconnects += 1;
  };
  const disturbances: [() => Promise<void>, ...(() => Promise<void>)[]] = [
    () => restart('host'),
    () => restart('api'),
    ...Array.from({ length: 6 }, () => disconnect),
    async () => {
      await sandbox.exec(`sudo -n kill -9 ${GUEST_DAEMON}`).catch(() => undefined);
      figures.kills += 1;
    },
    async () => {
      await sandbox.sleep();
      await sandbox.wake();
      figures.sleeps += 1;
    },
  ];
  const untilMs = performance.now() + SECONDS * 1_000;
  while (performance.now() < untilMs) {
    await grows();
    await delay(random.integer(0, 3_000));
    await random.pick(disturbances)();
  }
  await grows();
  await process.kill('SIGKILL');
  const length = await reading;
  assert.equal(length, figures.bytes + figures.lostBytes);
  assert.equal((await process.exited).exitCode, 137);
  t.diagnostic(`${SECONDS} s, seed ${SEED}: ${JSON.stringify(figures)}`);
});
