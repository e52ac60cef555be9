// A line chart of one or two figures over time. Colours are custom properties of the style sheet.
import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { metricsText as text } from '../../text/metrics.ts';
import { zoneName } from '../../rules/page/zone.ts';
import css from './metrics.module.css';

const HEIGHT = 180;
const AXIS_WIDTH = 68;
const POWERS = Array.from({ length: 50 }, (_, power) => 2 ** power);
const SHARES = [10, 25, 50];
const DASHES = [[], [6, 4]];

export interface Mark {
  atMs: number;
  name: string;
}

interface ChartProps {
  /** Ends of the time axis. */
  fromMs: number;
  toMs: number;
  /** Times in seconds, then each figure. */
  data: uPlot.AlignedData;
  marks: readonly Mark[];
  label: string;
  /** The axis ends here at least. */
  top: number;
  unit: 'share' | 'bytes';
  format: (amount: number) => string;
  /** Called with the index of the point below the pointer; null: none. */
  onPoint: (index: number | null) => void;
}

export function Chart(props: ChartProps) {
  const at = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>(null);
  // The chart reads the newest properties whenever it draws.
  const current = useRef(props);
  useEffect(() => {
    current.current = props;
    chart.current?.setData(props.data);
  });
  useEffect(() => {
    const target = at.current;
    if (target === null) return;
    const made = new uPlot(optionsOf(target, current), current.current.data, target);
    chart.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: target.clientWidth, height: HEIGHT }));
    resized.observe(target);
    const redraw = (): void => made.redraw();
    const themed = new MutationObserver(redraw);
    themed.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    const forced = matchMedia('(forced-colors: active)');
    forced.addEventListener('change', redraw);
    return () => {
      resized.disconnect();
      themed.disconnect();
      forced.removeEventListener('change', redraw);
      chart.current = null;
      made.destroy();
    };
  }, []);
  // oxlint-disable-next-line jsx-a11y/prefer-tag-over-role -- a canvas is no img
  return <div ref={at} className={css.chart} role="img" aria-label={props.label} />;
}

function optionsOf(target: HTMLElement, current: { readonly current: ChartProps }): uPlot.Options {
  const colour = (name: string) => (): string => getComputedStyle(target).getPropertyValue(name).trim();
  const { unit } = current.current;
  const axis = { stroke: colour('--chart-text'), font: '12px system-ui, sans-serif', ticks: { show: false } };
  const grid = { stroke: colour('--chart-grid'), width: 1 };
  return {
    width: target.clientWidth,
    height: HEIGHT,
    padding: [16, 12, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: 'metrics' }, drag: { x: false, y: false }, points: { size: 7 } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), zoneName()),
    scales: {
      x: { range: () => [current.current.fromMs / 1_000, current.current.toMs / 1_000] },
      y: { range: (_chart, _least, most) => [0, Math.max(current.current.top, (most ?? 0) * 1.1, 1)] },
    },
    axes: [
      {
        ...axis,
        grid,
        size: 26,
        space: 70,
        values: (_chart, splits, _axis, _space, step) => splits.map((seconds) => text.tick(seconds * 1_000, step < 60)),
      },
      {
        ...axis,
        grid,
        size: AXIS_WIDTH,
        incrs: unit === 'share' ? SHARES : POWERS,
        values: (_chart, splits) => splits.map((amount) => current.current.format(amount)),
      },
    ],
    series: current.current.data.map((_, index) =>
      index === 0
        ? {}
        : {
            stroke: colour(index === 1 ? '--chart-first' : '--chart-second'),
            width: 1.5,
            dash: DASHES[index - 1] ?? [],
            spanGaps: false,
            points: { show: false },
          },
    ),
    hooks: {
      setCursor: [({ cursor }) => current.current.onPoint(cursor.idx ?? null)],
      drawClear: [(chart) => drawMarks(chart, current.current.marks, colour('--chart-text')())],
    },
  };
}

/** Lines across the chart, with their names where there is room. */
function drawMarks(chart: uPlot, marks: readonly Mark[], colour: string): void {
  const { ctx, bbox } = chart;
  const { devicePixelRatio: ratio } = window;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.lineWidth = ratio;
  ctx.setLineDash([2 * ratio, 3 * ratio]);
  ctx.textAlign = 'left';
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  let free = -Infinity;
  for (const { atMs, name } of marks) {
    const x = chart.valToPos(atMs / 1_000, 'x', true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const { width } = ctx.measureText(name);
    const left = Math.min(x, bbox.left + bbox.width - width);
    if (left < free) continue;
    ctx.fillText(name, left, bbox.top - 4 * ratio);
    free = left + width + 6 * ratio;
  }
  ctx.restore();
}
