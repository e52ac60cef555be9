// Duration of file writes and reads through the public API, beside a minimal command.
import { randomBytes } from 'node:crypto';
import { timed, type BenchWorld } from '../world/installation.ts';
import { measured, type Measured } from '../world/statistics.ts';

const SIZES = [
  { name: '1 KiB', key: '1KiB', bytes: 1_024 },
  { name: '100 KiB', key: '100KiB', bytes: 102_400 },
  { name: '2 MiB', key: '2MiB', bytes: 2_097_152 },
] as const;
/** Unmeasured first rounds: code not yet compiled, and a freshly restored VM. */
const WARM_UPS = 3;

export async function measureFiles({ client, progress }: BenchWorld, rounds: number): Promise<Measured[]> {
  return await progress.step(`files of ${SIZES.map(({ name }) => name).join(', ')}`, async (report) => {
    const id = await client.createAwake();
    const rows: Measured[] = [];
    for (const { name, key, bytes } of SIZES) {
      const [writeMs, readMs]: [number[], number[]] = [[], []];
      for (let round = -WARM_UPS; round < rounds; round += 1) {
        report(`${name}: ${Math.max(0, round + 1)} of ${rounds}`);
        const content = randomBytes(bytes);
        const written = await timed(() => client.writeFile(id, 'bench/file', content));
        const read = await timed(async () => {
          const back = await client.readFile(id, 'bench/file');
          if (!back.equals(content)) throw new Error(`a file of ${bytes} bytes came back with ${back.length} others`);
        });
        if (round < 0) continue;
        writeMs.push(written);
        readMs.push(read);
      }
      rows.push(measured(`fileWrite${key}Ms`, `write of ${name}`, 'ms', writeMs));
      rows.push(measured(`fileRead${key}Ms`, `read of ${name}`, 'ms', readMs));
    }
    const [listMs, execMs]: [number[], number[]] = [[], []];
    for (let round = -WARM_UPS; round < rounds; round += 1) {
      const listed = await timed(() => client.listFiles(id, '/usr/bin'));
      const ran = await timed(() => client.exec(id, 'echo'));
      if (round < 0) continue;
      listMs.push(listed);
      execMs.push(ran);
    }
    rows.push(measured('fileListUsrBinMs', 'list of /usr/bin', 'ms', listMs));
    rows.push(measured('execEchoMs', 'exec of echo, for comparison', 'ms', execMs));
    await client.destroy(id);
    return rows;
  });
}
