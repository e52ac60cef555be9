// The check `power`: cuts the power at random moments under load. The records of the load leave the
// machine by a serial port before the next call, so each acknowledged result is known outside.
import { setTimeout as delay } from 'node:timers/promises';
import { Boots, type Bench } from './boots.ts';
import { RECORD_MARK, type LoadRecord } from './order.ts';

/** Limits of the random moment: records since the load began, and time after the last of them. */
const MOST_RECORDS = 40;
const MOST_MS = 5_000;

export async function cutPower(bench: Bench): Promise<number> {
  const [cuts = '20', driver = 'qemu'] = bench.args;
  const boots = await Boots.of(bench);
  const records: LoadRecord[] = [];
  for (let cut = 1; cut <= Number(cuts) + 1; cut += 1) {
    const isLast = cut > Number(cuts);
    const wanted = 1 + Math.floor(Math.random() * MOST_RECORDS);
    const reached = Promise.withResolvers<'cut'>();
    const before = records.length;
    const onLine = (line: string): void => {
      if (!line.startsWith(RECORD_MARK)) return console.log(line);
      records.push(JSON.parse(line.slice(RECORD_MARK.length)) as LoadRecord);
      if (records.length === before + wanted) reached.resolve('cut');
    };
    const mode = isLast ? 'verify' : 'load';
    const order = {
      steps: [{ name: mode, command: `node lab/inside/load.ts ${mode} ${driver}` }],
      // A copy: the array grows while the machine runs.
      records: [...records],
    };
    const ended = await boots.run(
      order,
      async (machine) => {
        const first = await Promise.race([machine.exitCode, reached.promise]);
        if (first === 'cut') await delay(Math.random() * MOST_MS);
        return first;
      },
      onLine,
    );
    if (ended === 'cut') console.log(`• power cut ${cut} of ${cuts}, after ${records.length - before} records`);
    else return isLast ? ended : ended || 1;
  }
  return 0;
}
