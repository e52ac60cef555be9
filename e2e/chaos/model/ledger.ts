// Compares the metered intervals with the clients' observations: none twice, none left open, none
// while a sandbox was surely not awake, none missing while it surely was. Pure; times in
// milliseconds since 1970.
import type { UsageInterval } from '../../world/database.ts';
import { DEATH_TOLERANCE_MS, type Fact } from './known-sandbox.ts';
import type { Finding } from '../judging/report.ts';

/** Tolerated difference between a change and its response: clocks and transactions. */
const TOLERANCE_MS = 1_000;

interface Span {
  fromMs: number;
  toMs: number;
}

export interface LedgerSubject {
  id: string;
  facts: readonly Fact[];
  /** Kills of its VM, each with the last time that an observer was up to see it alive. */
  deaths: readonly { atMs: number; lastWatchedMs: number }[];
  /** Awake now, at rest; null when it has expired since the last view: either. */
  awake: boolean | null;
}

interface LedgerFinding {
  finding: Finding;
  what: string;
}

/** @param nowMs a moment at which all is at rest */
export function checkLedger(
  subject: LedgerSubject,
  intervals: readonly UsageInterval[],
  nowMs: number,
): LedgerFinding[] {
  const own = intervals.filter(({ sandboxId }) => sandboxId === subject.id).sort((a, b) => a.fromMs - b.fromMs);
  const findings: LedgerFinding[] = [];
  const say = (finding: Finding, what: string): void => void findings.push({ finding, what: `${subject.id}: ${what}` });
  for (const [index, interval] of own.entries()) {
    const next = own[index + 1];
    if (next !== undefined && (interval.toMs ?? Infinity) > next.fromMs)
      say('interval-overlapping', `${shown(interval)} and ${shown(next)}`);
  }
  const open = own.filter(({ toMs }) => toMs === null).length;
  if (open > (subject.awake === false ? 0 : 1))
    say('interval-unclosed', `${open} are open while it is ${subject.awake === false ? 'not awake' : 'awake'}`);
  if (subject.awake && open === 0) say('interval-wrong', 'it is awake and none is open');

  const metered = joined(own.map(({ fromMs, toMs }) => ({ fromMs, toMs: toMs ?? nowMs })));
  for (const awake of surelyAwake(subject)) {
    const missing = without(awake, metered).filter(({ fromMs, toMs }) => toMs - fromMs > TOLERANCE_MS);
    for (const span of missing) say('interval-wrong', `was awake and not metered ${shown(span)}`);
  }
  for (const asleep of surelyNotAwake(subject, nowMs)) {
    const wrong = metered
      .map((span) => common(span, asleep))
      .filter(({ fromMs, toMs }) => toMs - fromMs > TOLERANCE_MS);
    for (const span of wrong) say('interval-wrong', `was not awake and metered ${shown(span)}`);
  }
  return findings;
}

/** Spans between responses that showed the sandbox awake, with no possible change in between. */
export function surelyAwake({ facts, deaths }: Pick<LedgerSubject, 'facts' | 'deaths'>): Span[] {
  const spans: Span[] = [];
  let current: Span | null = null;
  const close = (): void => {
    if (current !== null && current.toMs > current.fromMs) spans.push(current);
    current = null;
  };
  for (const fact of inOrder(facts)) {
    if (fact.what !== 'awake') close();
    else if (current === null) current = { fromMs: fact.toMs, toMs: fact.fromMs };
    else current.toMs = Math.max(current.toMs, fact.fromMs);
  }
  close();
  // The time right before a VM's death may be unmetered: its interval ends at the last sighting.
  return deaths.reduce(
    (left, { atMs, lastWatchedMs }) =>
      left.flatMap((span) =>
        without(span, [
          { fromMs: Math.min(atMs, lastWatchedMs) - DEATH_TOLERANCE_MS, toMs: atMs + DEATH_TOLERANCE_MS },
        ]),
      ),
    spans,
  );
}

/** Spans from each response that showed rest and not awake, to the next sign of a change. */
export function surelyNotAwake({ facts }: Pick<LedgerSubject, 'facts'>, nowMs: number): Span[] {
  const ordered = inOrder(facts);
  return ordered.flatMap((fact, index) => {
    if (fact.what !== 'not-awake') return [];
    const next = ordered.slice(index + 1).find(({ what }) => what !== 'not-awake');
    const toMs = next?.fromMs ?? nowMs;
    return toMs > fact.toMs ? [{ fromMs: fact.toMs, toMs }] : [];
  });
}

function inOrder(facts: readonly Fact[]): Fact[] {
  return [...facts].sort((a, b) => a.fromMs - b.fromMs);
}

/** Merges spans that touch or overlap. */
function joined(spans: readonly Span[]): Span[] {
  const result: Span[] = [];
  for (const span of spans) {
    const last = result.at(-1);
    if (last !== undefined && span.fromMs <= last.toMs) last.toMs = Math.max(last.toMs, span.toMs);
    else result.push({ ...span });
  }
  return result;
}

/** Parts of the span that no other span covers. */
function without(span: Span, others: readonly Span[]): Span[] {
  let left: Span[] = [span];
  for (const other of others) {
    left = left.flatMap(({ fromMs, toMs }) =>
      [
        { fromMs, toMs: Math.min(toMs, other.fromMs) },
        { fromMs: Math.max(fromMs, other.toMs), toMs },
      ].filter((part) => part.toMs > part.fromMs),
    );
  }
  return left;
}

function common(a: Span, b: Span): Span {
  return { fromMs: Math.max(a.fromMs, b.fromMs), toMs: Math.min(a.toMs, b.toMs) };
}

function shown({ fromMs, toMs }: { fromMs: number; toMs: number | null }): string {
  const from = `from ${new Date(fromMs).toISOString()}`;
  if (toMs === null) return `${from} to now`;
  return `${from} to ${new Date(toMs).toISOString()} (${((toMs - fromMs) / 1_000).toFixed(1)} s)`;
}
