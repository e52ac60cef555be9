// `berth sandbox metrics`: prints live metrics, once or continuously, their history, or a sample
// with a recommended size.
import type { LiveMetrics, MetricsHistory, MetricsSample } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { bar, bytes, mebibytes, percent } from '../output/amount.ts';
import { fieldLines, type Field } from '../output/fields.ts';
import { Screen } from '../output/screen.ts';
import { duration, instant } from '../output/time.ts';
import { repeat } from '../interaction/repeat.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import { sizeText } from './view.ts';
import type { Input } from '../program/command-spec.ts';

interface MetricsInput {
  watch?: boolean;
  interval?: number;
  count?: number;
  history?: number;
  sample?: boolean;
}

const INTERVAL_SECONDS = 2;
const BAR_CELLS = 20;

export async function sandboxMetrics(
  context: CliContext,
  { args: [typed], options }: Input<MetricsInput>,
): Promise<number | void> {
  const { connect, out, signal } = context;
  const modes = [options.watch && '--watch', options.history && '--history', options.sample && '--sample'];
  const [mode, other] = modes.filter((name) => typeof name === 'string');
  if (other !== undefined) throw new UsageError(`${mode} cannot be combined with ${other}`);
  if (options.watch !== true && (options.interval !== undefined || options.count !== undefined))
    throw new UsageError('--interval and --count require --watch');
  const id = await findSandbox(context, typed);

  if (options.watch === true) return await watch(context, id, options);
  const { berth } = await connect();
  if (options.history !== undefined) {
    const query = { windowSeconds: options.history };
    const answer = await berth.raw.getMetricsHistory({ path: { sandboxId: id }, query, signal });
    if (out.json) out.object(answer);
    else printHistory(out, answer.history);
    return;
  }
  if (options.sample === true) {
    const answer = await berth.raw.sampleMetrics({ path: { sandboxId: id }, signal });
    if (out.json) out.object(answer);
    else out.fields(sampleFields(answer.sample));
    return;
  }
  const answer = await berth.raw.getLiveMetrics({ path: { sandboxId: id }, signal });
  if (out.json) out.object(answer);
  else out.fields(metricsFields(answer.metrics, out.columns !== undefined));
}

async function watch(
  context: CliContext,
  id: string,
  { interval = INTERVAL_SECONDS, count }: MetricsInput,
): Promise<number> {
  const { connect, out, signal, stdout, environment } = context;
  const { berth } = await connect();
  const fetchMetrics = async () => await berth.raw.getLiveMetrics({ path: { sandboxId: id }, signal });
  const pollOptions = { intervalSeconds: interval, signal, count };
  if (out.json) return await repeat(pollOptions, async () => out.object(await fetchMetrics()));
  if (!stdout.isTTY || environment['TERM'] === 'dumb')
    return await repeat(pollOptions, async () => out.line(metricsLine((await fetchMetrics()).metrics)));
  let last: LiveMetrics | undefined;
  try {
    return await Screen.during(stdout, async (screen) => {
      return await repeat(pollOptions, async () => {
        last = (await fetchMetrics()).metrics;
        screen.show([`${id}, every ${interval} s; Ctrl-C stops`, '', ...fieldLines(metricsFields(last, true))]);
      });
    });
  } finally {
    // Leaves the last values on the normal screen.
    if (last !== undefined) out.fields(metricsFields(last, true));
  }
}

function printHistory(out: CliContext['out'], { points }: MetricsHistory): void {
  const known = (amount: number | null, format: (amount: number) => string): string =>
    amount === null ? '-' : format(amount);
  out.table(
    [
      { title: 'at', value: ({ at }) => instant(at), whole: true },
      { title: 'cpu', value: ({ cpuUsedPercent }) => known(cpuUsedPercent, percent), least: 7 },
      { title: 'memory', value: ({ residentMemoryMib }) => known(residentMemoryMib, mebibytes), least: 8 },
      { title: 'disk', value: ({ diskUsedMib }) => known(diskUsedMib, mebibytes), least: 8 },
      { title: 'in/s', value: ({ receivedBytesPerSecond }) => known(receivedBytesPerSecond, bytes), least: 8 },
      { title: 'out/s', value: ({ sentBytesPerSecond }) => known(sentBytesPerSecond, bytes), least: 8 },
    ],
    points,
    'no figures in this period; a host begins a history when a sandbox runs, and anew when it restarts',
  );
}

function metricsFields({ sampledAt, guest, host }: LiveMetrics, bars: boolean): Field[] {
  const { cpu, load, memory, disk, network } = guest;
  const beside = (share: number, text: string): string => (bars ? `${bar(share, BAR_CELLS)}  ${text}` : text);
  const amountOf = ({ usedMib, totalMib, usedPercent }: typeof memory): string =>
    beside(usedPercent, `${mebibytes(usedMib)} of ${mebibytes(totalMib)} (${percent(usedPercent)})`);
  return [
    [
      'cpu',
      beside(
        cpu.usedPercent ?? 0,
        `${cpu.usedPercent === null ? 'unknown' : percent(cpu.usedPercent)} of ${cpu.vcpu} vCPU`,
      ),
    ],
    ['memory', amountOf(memory)],
    ['disk', amountOf(disk)],
    ['network', `${bytes(network.receivedBytes)} in, ${bytes(network.sentBytes)} out`],
    ['load', [load.oneMinute, load.fiveMinutes, load.fifteenMinutes].map((average) => average.toFixed(2)).join(' ')],
    ['processes', guest.processCount],
    ['uptime', duration(guest.uptimeSeconds)],
    [
      'on the host',
      `${mebibytes(host.residentMemoryMib)} memory (${mebibytes(host.unsharedMemoryMib)} unshared), ` +
        `${mebibytes(host.diskUsedMib)} disk`,
    ],
    ['at', instant(sampledAt)],
  ];
}

/** Prints an update per line, for logs. */
function metricsLine({ sampledAt, guest: { cpu, memory, disk, network } }: LiveMetrics): string {
  const used = cpu.usedPercent === null ? '-' : percent(cpu.usedPercent);
  const parts = [
    `cpu ${used}`,
    `memory ${mebibytes(memory.usedMib)} (${percent(memory.usedPercent)})`,
    `disk ${mebibytes(disk.usedMib)} (${percent(disk.usedPercent)})`,
  ];
  return [
    instant(sampledAt),
    ...parts,
    `network ${bytes(network.receivedBytes)} in, ${bytes(network.sentBytes)} out`,
  ].join('  ');
}

function sampleFields(sample: MetricsSample): Field[] {
  const { cpuUsedPercent } = sample;
  return [
    ['current', sizeText(sample.currentAllocation)],
    ['recommended', sizeText(sample.recommendedAllocation)],
    ['reason', sample.reason],
    ['stored', sample.storedAsPending ? 'for the next wake' : 'no'],
    ['cpu', cpuUsedPercent === null ? 'unknown' : percent(cpuUsedPercent)],
    ['memory', percent(sample.memoryUsedPercent)],
    ['disk', percent(sample.diskUsedPercent)],
    ['at', instant(sample.sampledAt)],
  ];
}
