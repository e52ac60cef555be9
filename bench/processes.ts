// Processes: time to the first output, throughput of an output, replay of a log, and many at once.
// Through the public API and the SDK, as a user has them, beside an exec and a direct connection to
// the guest. Usage: npm run bench:processes -- [--starts N] [--streams N] [--live N] [--json]
import { connect } from 'node:net';
import { Progress } from '@berth/machine/output/progress.ts';
import type { HostInfo } from '@berth/protocol/calls/vms.ts';
import { Berth, type Sandbox, type SandboxProcess } from '../sdk/src/index.ts';
import { addressOf, unsharedMemoryOf } from './world/guest.ts';
import { hardware } from './world/hardware.ts';
import { timed, withWorld } from './world/installation.ts';
import { readOptions } from './world/options.ts';
import { figureOf, figuresByKey, measured, renderTable, round } from './world/statistics.ts';

const MIB = 1_048_576;
const STREAM_BYTES = 32 * MIB;
const REPLAY_BYTES = 4 * MIB;
const PORT = 9_000;

const options = readOptions({
  starts: { type: 'string', default: '20' },
  streams: { type: 'string', default: '5' },
  live: { type: 'string', default: '100' },
  json: { type: 'boolean', default: false },
});
const starts = options.whole('starts', 1, 1_000);
const streams = options.whole('streams', 1, 100);
const live = options.whole('live', 1, 250);

const found = {
  execMs: [] as number[],
  firstByteMs: [] as number[],
  mibPerSecond: [] as number[],
  directMibPerSecond: [] as number[],
  replayMs: [] as number[],
  liveStartMs: [] as number[],
  listMs: [] as number[],
  liveExecMs: [] as number[],
};
let guestKibPerProcess = 0;
const host: HostInfo = await withWorld(new Progress(), {}, async (world) => {
  const { client, progress, url } = world;
  const id = await client.createAwake();
  const sandbox = await new Berth({ url, apiKey: client.token }).sandboxes.get(id);

  await progress.step(`${starts} execs and first outputs of processes, in turn`, async () => {
    for (let index = -2; index < starts; index += 1) {
      const execMs = await timed(() => sandbox.exec('echo first'));
      let process: SandboxProcess | undefined;
      const firstByteMs = await timed(async () => {
        process = await sandbox.spawn('echo first');
        await lengthOf(process, 1);
      });
      await process?.remove();
      if (index < 0) continue;
      found.execMs.push(execMs);
      found.firstByteMs.push(firstByteMs);
    }
  });

  await progress.step(`${streams} streams of ${STREAM_BYTES / MIB} MiB, and as many directly, in turn`, async () => {
    const address = await addressOf(world, id);
    for (let index = -1; index < streams; index += 1) {
      const streamMs = await streamed(sandbox);
      const directMs = await received(sandbox, address);
      if (index < 0) continue;
      found.mibPerSecond.push((STREAM_BYTES / MIB / streamMs) * 1_000);
      found.directMibPerSecond.push((STREAM_BYTES / MIB / directMs) * 1_000);
    }
  });

  await progress.step(`${streams} replays of ${REPLAY_BYTES / MIB} MiB`, async () => {
    const process = await sandbox.spawn(`head -c ${REPLAY_BYTES} /dev/zero`);
    await process.exited;
    for (let index = 0; index < streams; index += 1)
      found.replayMs.push(await timed(() => lengthOf(process, REPLAY_BYTES)));
  });

  await progress.step(`${live} processes at once, each with a reader`, async () => {
    const before = await unsharedMemoryOf(id);
    const stop = new AbortController();
    const readers: Promise<unknown>[] = [];
    for (let index = 0; index < live; index += 1) {
      let process: SandboxProcess | undefined;
      found.liveStartMs.push(await timed(async () => (process = await sandbox.spawn(['sleep', '100000']))));
      if (process !== undefined) readers.push(lengthOf(process, 1, stop.signal).catch(() => undefined));
    }
    for (let index = 0; index < starts; index += 1) {
      found.listMs.push(await timed(() => sandbox.processes.list()));
      found.liveExecMs.push(await timed(() => sandbox.exec('echo first')));
    }
    guestKibPerProcess = ((await unsharedMemoryOf(id)).guestMib - before.guestMib) * (1_024 / live);
    stop.abort();
    await Promise.all(readers);
  });
  await client.destroy(id);
  return await world.host();
});

/** Reads until there are so many bytes. */
async function lengthOf(process: SandboxProcess, bytes: number, signal?: AbortSignal): Promise<void> {
  let length = 0;
  for await (const { bytes: part, lostBytes } of process.output({ signal })) {
    if (lostBytes > 0) throw new Error(`${lostBytes} bytes are lost`);
    length += part.length;
    if (length >= bytes) return;
  }
  throw new Error(`the output has ${length} of ${bytes} bytes`);
}

/** Milliseconds from the start of the process to its last byte. */
async function streamed(sandbox: Sandbox): Promise<number> {
  const process = await sandbox.spawn(`head -c ${STREAM_BYTES} /dev/zero`, { outputBytes: 2 * STREAM_BYTES });
  const ms = await timed(() => lengthOf(process, STREAM_BYTES));
  await process.remove();
  return ms;
}

/** The same bytes over a TCP connection from the host to the guest, without any part of Berth. */
async function received(sandbox: Sandbox, address: string): Promise<number> {
  const server = `
import socket
with socket.create_server(("", ${PORT})) as server:
    print("ready", flush=True)
    with server.accept()[0] as connection:
        connection.sendall(bytes(${STREAM_BYTES}))`;
  const process = await sandbox.spawn(['python3', '-c', server]);
  await lengthOf(process, 1);
  let length = 0;
  const ms = await timed(async () => {
    for await (const chunk of connect(PORT, address)) length += (chunk as Buffer).length;
  });
  if (length !== STREAM_BYTES) throw new Error(`${length} of ${STREAM_BYTES} bytes came`);
  await process.remove();
  return ms;
}

const rows = [
  measured('execMs', 'exec', 'ms', found.execMs),
  measured('firstByteMs', 'start of a process to its first output', 'ms', found.firstByteMs),
  measured('streamMibPerSecond', 'output of a process', 'MiB/s', found.mibPerSecond),
  measured('directMibPerSecond', 'the same over a direct connection', 'MiB/s', found.directMibPerSecond),
  measured('attachReplayMs', `replay of ${REPLAY_BYTES / MIB} MiB`, 'ms', found.replayMs),
  measured('liveStartMs', `start of each of ${live}`, 'ms', found.liveStartMs),
  measured('liveListMs', `list of ${live}`, 'ms', found.listMs),
  measured('liveExecMs', `exec beside ${live} with a reader each`, 'ms', found.liveExecMs),
];
const ratio = (one: readonly number[], other: readonly number[]): number =>
  round(figureOf(one).median / figureOf(other).median, 2);
const ratios = {
  spawnFirstByteRatio: ratio(found.firstByteMs, found.execMs),
  streamRatio: ratio(found.mibPerSecond, found.directMibPerSecond),
  guestKibPerProcess: round(guestKibPerProcess, 0),
};
const machine = hardware();
const { accelerator, qemuVersion } = host;
console.log(`\n${machine}; accelerator ${accelerator}, QEMU ${qemuVersion}\n`);
console.log(renderTable(rows));
console.log(
  `\nfirst output to exec ${ratios.spawnFirstByteRatio}, output to direct ${ratios.streamRatio}, ` +
    `${ratios.guestKibPerProcess} KiB of the guest per process with a reader`,
);
if (options.values.json)
  console.log(JSON.stringify({ ...figuresByKey(rows), ...ratios, starts, streams, live, machine, accelerator }));
