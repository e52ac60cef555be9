// Restarts of the gateways: a gateway that crashes at its start is started again ever more rarely,
// with one log entry each, and serves once it can.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { pino, type Logger } from 'pino';
import { until } from '../../../os/test/until.ts';
import { freePort } from '../../../protocol/test/free-port.ts';
import { GatewayProcess } from '../../src/gateway/launch.ts';
import { ModelGateway } from '../../src/model-gateway/client.ts';
import { FAKE_GATEWAY_UID, FAKE_MODEL_GATEWAY_UID } from '../../src/network/slots/slot.ts';
import { programOf } from './process-facts.ts';

const NEVER = new AbortController().signal;

let folder: string;
let logged: { msg: string }[];
let log: Logger;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-restarts-'));
  logged = [];
  log = pino({}, { write: (line: string) => void logged.push(JSON.parse(line) as { msg: string }) });
});
afterEach(() => rm(folder, { recursive: true }));

const entries = (text: string): number => logged.filter(({ msg }) => msg.includes(text)).length;

/** Makes starts crash: a gateway cannot listen where a folder is. */
async function obstruct(from: number, to: number): Promise<void> {
  for (let number = from; number <= to; number += 1) await mkdir(join(folder, 'gateway', `socket-${number}`));
}

test('pauses between starts that fail double up to 10 s, and begin anew after 30 s in service', async () => {
  const pauses: number[] = [];
  const clock = {
    ms: 0,
    nowMs: () => clock.ms,
    pause: async (ms: number) => void pauses.push(ms),
  };
  const gateway = new GatewayProcess({ folder: join(folder, 'gateway'), uid: FAKE_GATEWAY_UID, log, clock });
  await gateway.start();
  try {
    await obstruct(2, 11);
    process.kill(await programOf(gateway.pid), 'SIGKILL');
    await until('it serves again', async () => (gateway.pid === null || pauses.length === 0 ? null : true));
    assert.deepEqual(pauses, [0, 100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000]);
    assert.deepEqual([entries('exited; starting it again'), entries('did not start')], [1, 10]);
    assert.deepEqual(await readdir(join(folder, 'gateway')), ['socket-12']);

    for (const [servedMs, pause] of [
      [29_999, 10_000],
      [30_000, 0],
    ] as const) {
      const { pid } = gateway;
      const paused = pauses.length;
      clock.ms += servedMs;
      process.kill(await programOf(pid), 'SIGKILL');
      await until('the next one serves', async () => (gateway.pid === null || gateway.pid === pid ? null : true));
      assert.deepEqual(pauses.slice(paused), [pause]);
    }
  } finally {
    await gateway.close();
  }
});

test('a connection waits for the first gateway that starts, and a close ends the starts', async () => {
  const gateway = new GatewayProcess({ folder: join(folder, 'gateway'), uid: FAKE_GATEWAY_UID, log });
  await gateway.start();
  await obstruct(2, 4);
  process.kill(await programOf(gateway.pid), 'SIGKILL');
  await until('a start failed', async () => (entries('did not start') > 0 ? true : null));
  (await gateway.connect(NEVER)).destroy();
  assert.equal(entries('did not start'), 3);

  await obstruct(6, 60);
  process.kill(await programOf(gateway.pid), 'SIGKILL');
  await until('a start failed', async () => (entries('did not start') > 3 ? true : null));
  await gateway.close();
  const ended = logged.length;
  await assert.rejects(gateway.connect(AbortSignal.timeout(1_000)), { name: 'TimeoutError' });
  assert.equal(logged.length, ended);
});

test('a model gateway that crashes at its start refuses with its own code, and recovers', async () => {
  const models = new ModelGateway({
    ...{ folder: join(folder, 'gateway'), uid: FAKE_MODEL_GATEWAY_UID, lowPorts: true, ca: null, log },
  });
  const listen = async () => ({ address: '127.0.0.1', port: await freePort() });
  try {
    await models.serve('first', await listen());
    await obstruct(2, 9);
    process.kill(await programOf(models.pid), 'SIGKILL');
    await assert.rejects(models.serve('second', await listen()), { code: 'agent_models_unavailable' });
    assert.ok(entries('did not start') <= 8, `${entries('did not start')} starts`);
    await until('it serves', async () => (models.pid === null ? null : true), 60_000);
    await models.serve('second', await listen());
    assert.equal(entries('did not start'), 8);
  } finally {
    await models.close();
  }
});
