// Texts of the metrics of a sandbox.
import { inZone, zoneName } from '../rules/page/zone.ts';

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

/** In the largest fitting unit, with one decimal below ten. */
function bytes(amount: number): string {
  const power = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(amount, 1)) / 10)));
  const scaled = amount / 1_024 ** power;
  return `${(scaled < 10 ? short : whole).format(scaled)} ${UNITS[power]}`;
}

const percent = (share: number): string => `${(share < 10 ? short : whole).format(share)} %`;
const time = inZone('en-GB', { timeStyle: 'medium' });

export const metricsText = {
  hint: () =>
    `Measured on the host, every 2 seconds while this page is visible. Times are ${zoneName()}. Looking wakes nothing.`,
  range: 'Period',
  ranges: { '10m': '10 minutes', '1h': '1 hour', '24h': '24 hours' },
  asleepTitle: 'Live figures need an awake sandbox',
  asleep: (status: string) => `The sandbox is ${status}. Its history stays; this page never wakes it.`,
  empty: 'No figures in this period yet',
  emptyHint:
    'A host records figures while the sandbox is awake, for a day. It begins anew when the host’s service restarts.',
  since: (atMs: number) => `Figures since ${time(atMs)}.`,
  historyFailed: 'The history could not be loaded',
  liveFailed: 'The live figures could not be loaded',
  charts: { cpu: 'CPU', memory: 'Memory', disk: 'Disk', network: 'Network' },
  figures: {
    cpu: 'Used, of all vCPUs',
    resident: 'On the host',
    unshared: 'Not shared with other sandboxes',
    disk: 'On the host',
    received: 'Received',
    sent: 'Sent',
  },
  percent,
  bytes,
  rate: (amount: number) => `${bytes(amount)}/s`,
  unknown: 'no figure',
  inside: (used: number, total: number) => `Inside the sandbox: ${bytes(used)} of ${bytes(total)} used.`,
  time,
  tick: (atMs: number, seconds: boolean) => (seconds ? time(atMs) : time(atMs).slice(0, 5)),
  now: 'now',
  at: () => `Time (${zoneName()})`,
  table: 'Show the figures',
  tableOf: (chart: string) => `${chart}, newest first`,
  chart: (name: string, figures: readonly string[]) => `${name}: ${figures.join(', ')}`,
  summary: (name: string, last: string, most: string) => `${name} ${last}, at most ${most}`,
  marks: { sandbox_stopped: 'asleep', sandbox_woken: 'woken' } as Readonly<Record<string, string>>,
  marksOf: (marks: readonly string[]) => `In this period: ${marks.join(', ')}.`,
  markAt: (name: string, atMs: number) => `${name} ${time(atMs)}`,
} as const;
