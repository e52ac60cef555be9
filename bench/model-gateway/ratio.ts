// Throughput of streamed model responses through the model gateway, relative to the same server
// without it, in turns. Server, gateway and client are separate processes.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { findFreePort } from '@berth/machine/config/ports.ts';
import { ModelGateway } from '../../host/src/model-gateway/client.ts';
import { FAKE_MODEL_GATEWAY_UID } from '../../host/src/network/slots/slot.ts';
import { figureOf } from '../world/statistics.ts';
import type { ModelStream } from './model-stream.ts';

interface StreamLoad extends ModelStream {
  /** Streams at the same time. */
  streams: number;
}

/** `model`: the pace of a fast model, 30 KB/s in each stream. The others: all that the host can. */
const STREAM_LOADS = {
  model: { streams: 4, events: 400, bytes: 150, everyMs: 5 },
  smallChunks: { streams: 1, events: 100_000, bytes: 200, everyMs: 0 },
  largeChunks: { streams: 1, events: 1_000, bytes: 65_536, everyMs: 0 },
} as const satisfies Record<string, StreamLoad>;

interface GatewayRatio {
  /** Bytes per second through the gateway by bytes per second without it; median of the turns. */
  ratio: number;
  directMibPerSecond: number;
  gatewayMibPerSecond: number;
}

/** Measures each load in `turns` pairs. */
export async function gatewayRatios(turns: number): Promise<Record<keyof typeof STREAM_LOADS, GatewayRatio>> {
  const server = spawn(process.execPath, [fileURLToPath(new URL('model-stream.ts', import.meta.url))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const folder = await mkdtemp(join(tmpdir(), 'berth-bench-'));
  const log = pino({ level: 'error' });
  const gateway = new ModelGateway({
    ...{ folder: join(folder, 'gateway'), uid: FAKE_MODEL_GATEWAY_UID, lowPorts: false, ca: null, log },
  });
  try {
    const [line] = (await once(server.stdout, 'data')) as [Buffer];
    const direct = `http://127.0.0.1:${Number(String(line))}`;
    const listen = { address: '127.0.0.1', port: await findFreePort('127.0.0.1') };
    await gateway.serve('vm', listen);
    const agent = { endpoint: direct, key: 'key' };
    await gateway.setAccess('vm', {
      orgId: 'org',
      asOfMs: 0,
      version: '',
      agents: { agent_one: agent, agent_two: agent },
    });
    const through = `http://${listen.address}:${listen.port}/openai`;
    const measured = {} as Record<keyof typeof STREAM_LOADS, GatewayRatio>;
    for (const name of Object.keys(STREAM_LOADS) as (keyof typeof STREAM_LOADS)[]) {
      const load = STREAM_LOADS[name];
      await mibPerSecond(through, { ...load, events: Math.ceil(load.events / 10) });
      const pairs: [number, number][] = [];
      for (let turn = 0; turn < turns; turn += 1)
        pairs.push([await mibPerSecond(direct, load), await mibPerSecond(through, load)]);
      measured[name] = {
        ratio: medianOf(pairs.map(([without, by]) => by / without)),
        directMibPerSecond: medianOf(pairs.map(([without]) => without)),
        gatewayMibPerSecond: medianOf(pairs.map(([, by]) => by)),
      };
    }
    return measured;
  } finally {
    server.kill('SIGKILL');
    await gateway.close();
    await rm(folder, { recursive: true });
  }
}

const medianOf = (values: readonly number[]): number => figureOf(values).median;

async function mibPerSecond(url: string, { streams, ...asked }: StreamLoad): Promise<number> {
  const startMs = performance.now();
  const bytes = await Promise.all(Array.from({ length: streams }, () => read(`${url}/v1/responses`, asked)));
  return bytes.reduce((sum, of) => sum + of, 0) / 1_048_576 / ((performance.now() - startMs) / 1_000);
}

async function read(url: string, asked: ModelStream): Promise<number> {
  const outgoing = request(url, { method: 'POST' }).end(JSON.stringify(asked));
  const [response] = await once(outgoing, 'response');
  let bytes = 0;
  response.on('data', (chunk: Buffer) => (bytes += chunk.length));
  await once(response, 'end');
  if (bytes !== asked.events * asked.bytes) throw new Error(`${bytes} bytes of status ${response.statusCode}`);
  return bytes;
}
