// Points of the charts of a sandbox: history and live readings in one series with explicit gaps.
import type { api } from '@berth/sdk';

const MIB = 2 ** 20;

/** Amounts in bytes, rates in bytes a second; null is unknown. */
export interface Point {
  atMs: number;
  cpu: number | null;
  resident: number | null;
  unshared: number | null;
  disk: number | null;
  received: number | null;
  sent: number | null;
}
export type Figure = Exclude<keyof Point, 'atMs'>;

const NOTHING = { cpu: null, resident: null, unshared: null, disk: null, received: null, sent: null };

const bytesOf = (mib: number | null): number | null => (mib === null ? null : mib * MIB);

function pastPoint(point: api.MetricsHistory['points'][number]): Point {
  return {
    atMs: Date.parse(point.at),
    cpu: point.cpuUsedPercent,
    resident: bytesOf(point.residentMemoryMib),
    unshared: bytesOf(point.unsharedMemoryMib),
    disk: bytesOf(point.diskUsedMib),
    received: point.receivedBytesPerSecond,
    sent: point.sentBytesPerSecond,
  };
}

/** @param before the reading before, of which the rates are the mean since then */
function livePoint({ sampledAt, guest, host }: api.LiveMetrics, before: api.LiveMetrics | undefined): Point {
  const atMs = Date.parse(sampledAt);
  const seconds = before === undefined ? 0 : (atMs - Date.parse(before.sampledAt)) / 1_000;
  // A counter starts anew with each wake.
  const rate = (now: number, then: number | undefined): number | null =>
    then === undefined || seconds <= 0 || now < then ? null : (now - then) / seconds;
  const cpu = rate(host.cpuSeconds, before?.host.cpuSeconds);
  return {
    atMs,
    cpu: cpu === null ? null : Math.min(100, (cpu / guest.cpu.vcpu) * 100),
    resident: bytesOf(host.residentMemoryMib),
    unshared: bytesOf(host.unsharedMemoryMib),
    disk: bytesOf(host.diskUsedMib),
    received: rate(host.network.receivedBytes, before?.host.network.receivedBytes),
    sent: rate(host.network.sentBytes, before?.host.network.sentBytes),
  };
}

/**
 * The points since a time, oldest first. Live readings take the place of the history's points near
 * them. Neighbours more than two steps apart are a gap.
 */
export function pointsSince(
  fromMs: number,
  history: api.MetricsHistory | undefined,
  readings: readonly api.LiveMetrics[],
): Point[] {
  const stepMs = (history?.stepSeconds ?? 10) * 1_000;
  const alone = readings.length === 1 && !history?.points.length;
  // The first reading has no rates. It would look like a gap behind the history.
  const live = readings.map((reading, index) => livePoint(reading, readings[index - 1])).slice(alone ? 0 : 1);
  const steps = new Set(live.map(({ atMs }) => Math.floor(atMs / stepMs)));
  const past = (history?.points ?? []).map(pastPoint).filter(({ atMs }) => !steps.has(Math.floor(atMs / stepMs)));
  const all = [...past, ...live].filter(({ atMs }) => atMs >= fromMs).toSorted((a, b) => a.atMs - b.atMs);
  return all.flatMap((point, index) => {
    const before = all[index - 1];
    const apart = before !== undefined && before.resident !== null && point.atMs - before.atMs > 2 * stepMs;
    return apart ? [{ atMs: before.atMs + stepMs, ...NOTHING }, point] : [point];
  });
}

/** At most `most` of the points, at even distances in time. */
export function thinned(points: readonly Point[], windowMs: number, most: number): Point[] {
  const slot = ({ atMs }: Point): number => Math.floor((atMs * most) / windowMs);
  return points.filter((point, index) => {
    const next = points[index + 1];
    return next === undefined || slot(next) !== slot(point);
  });
}
