// Tab of a sandbox: charts of its resource use, live while it is awake.
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { useSearchParams } from 'react-router';
import { SANDBOX_ACTION_RULES, type api } from '@berth/sdk';
import { activityQuery } from '../../queries/activity.ts';
import { liveMetricsQuery, metricsHistoryQuery } from '../../queries/metrics.ts';
import { pointsSince, thinned, type Figure, type Point } from '../../rules/metrics.ts';
import { isAwake } from '../../rules/status.ts';
import { metricsText as text } from '../../text/metrics.ts';
import { Choices } from '../../ui/forms/index.ts';
import { Alert, Loading, Notice, Records, useNow } from '../../ui/kit/index.ts';
import { Asleep } from '../sandboxes/action-button.tsx';
import { useSandboxInView } from '../sandboxes/in-view.tsx';
import { Chart, type Mark } from './chart.tsx';
import css from './metrics.module.css';

const SECONDS = { '10m': 600, '1h': 3_600, '24h': 86_400 } as const;
type Range = keyof typeof SECONDS;
const RANGES = Object.keys(SECONDS) as Range[];
const MARKED = ['sandbox_stopped', 'sandbox_woken'] as const;

const MIB = 2 ** 20;
const GIB = 2 ** 30;

const isRange = (value: string | null): value is Range => RANGES.some((range) => range === value);

export function MetricsPage() {
  const { sandbox } = useSandboxInView();
  const [search, setSearch] = useSearchParams();
  const asked = search.get('range');
  const range = isRange(asked) ? asked : '10m';
  const windowMs = SECONDS[range] * 1_000;
  const awake = isAwake(sandbox);
  const rules: Readonly<Record<string, string>> = SANDBOX_ACTION_RULES.metrics_history;
  const recorded = rules[sandbox.status] !== 'refuse';
  const history = useQuery({ ...metricsHistoryQuery(sandbox.id, SECONDS[range]), enabled: recorded });
  const live = useQuery({ ...liveMetricsQuery(sandbox.id), enabled: awake });
  const marks = useMarks();
  const readings = live.data ?? [];
  const last = readings.at(-1);
  const toMs = Math.max(useNow(), last === undefined ? 0 : Date.parse(last.sampledAt));
  const fromMs = toMs - windowMs;
  const points = pointsSince(fromMs, history.data, readings);
  const shown = marks.filter(({ atMs }) => atMs >= fromMs);
  const [first] = points;
  return (
    <div className={css.page}>
      <p className={css.hint}>{text.hint()}</p>
      {awake ? null : <Asleep title={text.asleepTitle} text={text.asleep} />}
      <div className={css.range}>
        <Choices
          legend={text.range}
          value={range}
          choices={RANGES.map((value) => ({ value, label: text.ranges[value] }))}
          onChange={(value) => setSearch({ range: value }, { replace: true })}
        />
      </div>
      <Alert title={text.historyFailed} error={history.error} />
      <Alert title={text.liveFailed} error={awake ? live.error : null} />
      {first === undefined && history.isLoading ? <Loading rows={6} /> : null}
      {first === undefined && !history.isLoading ? <Notice title={text.empty} hint={text.emptyHint} /> : null}
      {first === undefined ? null : (
        <>
          {first.atMs - fromMs > windowMs / 10 ? <p className={css.hint}>{text.since(first.atMs)}</p> : null}
          {shown.length === 0 ? null : (
            <p className={css.hint}>{text.marksOf(shown.map(({ name, atMs }) => text.markAt(name, atMs)))}</p>
          )}
          <div className={css.charts}>
            {chartsOf(sandbox, last).map((spec) => (
              <Figures
                key={spec.name}
                spec={spec}
                points={points}
                fromMs={fromMs}
                toMs={toMs}
                marks={shown}
                awake={awake}
              />
            ))}
          </div>
        </>
      )}
    </div>
  );
}

/** Sleeps and wakes, oldest first; none for a person who may not read the activity. */
function useMarks(): Mark[] {
  const { sandbox, org } = useSandboxInView();
  const enabled = org?.permissions.includes('activity.read') === true;
  const of = (kind: (typeof MARKED)[number]) => ({
    ...activityQuery(sandbox.orgId, { sandboxId: sandbox.id, kind }),
    enabled,
  });
  const entries = [useInfiniteQuery(of(MARKED[0])).data, useInfiniteQuery(of(MARKED[1])).data];
  return entries
    .flatMap((found) => found ?? [])
    .map(({ kind, at }) => ({ atMs: Date.parse(at), name: text.marks[kind] ?? kind }))
    .toSorted((one, other) => one.atMs - other.atMs);
}

function chartsOf(sandbox: api.Sandbox, last: api.LiveMetrics | undefined): FiguresSpec[] {
  const inside = (part: { usedMib: number; totalMib: number } | undefined): string | null =>
    part === undefined ? null : text.inside(part.usedMib * MIB, part.totalMib * MIB);
  const { charts, bytes, percent, rate } = text;
  return [
    { name: charts.cpu, figures: ['cpu'], unit: 'share', top: 100, format: percent, detail: null },
    {
      name: charts.memory,
      figures: ['resident', 'unshared'],
      unit: 'bytes',
      top: sandbox.allocated_memory_gb * GIB,
      format: bytes,
      detail: inside(last?.guest.memory),
    },
    {
      name: charts.disk,
      figures: ['disk'],
      unit: 'bytes',
      top: 64 * MIB,
      format: bytes,
      detail: inside(last?.guest.disk),
    },
    { name: charts.network, figures: ['received', 'sent'], unit: 'bytes', top: 1_024, format: rate, detail: null },
  ];
}

const ROWS = 120;
/** A newer point is the present. */
const PRESENT_MS = 30_000;

interface FiguresSpec {
  name: string;
  figures: readonly Figure[];
  unit: 'share' | 'bytes';
  top: number;
  format: (amount: number) => string;
  detail: string | null;
}

interface FiguresProps {
  spec: FiguresSpec;
  points: readonly Point[];
  fromMs: number;
  toMs: number;
  marks: readonly Mark[];
  awake: boolean;
}

/** A chart with its legend, and its figures as a table. */
function Figures({ spec, points, fromMs, toMs, marks, awake }: FiguresProps) {
  const { name, figures, unit, top, format, detail } = spec;
  const id = useId();
  const [pointed, setPointed] = useState<number | null>(null);
  const [opened, setOpened] = useState(false);
  const over = pointed === null ? undefined : points[pointed];
  const point = over ?? points.at(-1);
  const isNow = awake && over === undefined && toMs - (point?.atMs ?? 0) < PRESENT_MS;
  const shown = (amount: number | null | undefined): string => (amount == null ? text.unknown : format(amount));
  const label = figures.map((figure) => {
    const most = points.reduce((sum, one) => Math.max(sum, one[figure] ?? 0), 0);
    return text.summary(text.figures[figure], shown(points.at(-1)?.[figure]), format(most));
  });
  return (
    <section className={css.part} aria-labelledby={id}>
      <div className={css.head}>
        <h2 id={id}>{name}</h2>
        <span className={css.hint}>{isNow || point === undefined ? text.now : text.time(point.atMs)}</span>
      </div>
      <ul className={css.legend}>
        {figures.map((figure) => (
          <li key={figure}>
            {text.figures[figure]} <b>{shown(point?.[figure])}</b>
          </li>
        ))}
      </ul>
      <Chart
        label={text.chart(name, label)}
        fromMs={fromMs}
        toMs={toMs}
        data={[points.map(({ atMs }) => atMs / 1_000), ...figures.map((figure) => points.map((one) => one[figure]))]}
        marks={marks}
        top={top}
        unit={unit}
        format={format}
        onPoint={setPointed}
      />
      {detail === null ? null : <p className={css.hint}>{detail}</p>}
      <details onToggle={({ currentTarget }) => setOpened(currentTarget.open)}>
        <summary>{text.table}</summary>
        {opened ? (
          <Records
            label={text.tableOf(name)}
            records={thinned(points, toMs - fromMs, ROWS).toReversed()}
            keyOf={({ atMs }) => String(atMs)}
            columns={[
              { name: text.at(), cell: ({ atMs }) => text.time(atMs) },
              ...figures.map((figure) => ({ name: text.figures[figure], cell: (one: Point) => shown(one[figure]) })),
            ]}
          />
        ) : null}
      </details>
    </section>
  );
}
