// Amounts as bars: a row of them, and a single one as a share.
// oxlint-disable jsx-a11y/prefer-tag-over-role -- an inline SVG is no img
import css from './bars.module.css';

const HEIGHT = 100;
const GAP = 0.2;

interface BarsProps {
  /** A sentence that says the same as the bars. */
  label: string;
  bars: readonly { key: string; amount: number; title: string }[];
}

export function Bars({ label, bars }: BarsProps) {
  const most = Math.max(...bars.map(({ amount }) => amount), Number.MIN_VALUE);
  return (
    <svg
      className={css.bars}
      viewBox={`0 0 ${bars.length} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {bars.map(({ key, amount, title }, index) => {
        const height = (amount / most) * HEIGHT;
        return (
          <g key={key}>
            <title>{title}</title>
            <rect className={css.ground} x={index} y={0} width={1} height={HEIGHT} />
            <rect className={css.bar} x={index + GAP / 2} y={HEIGHT - height} width={1 - GAP} height={height} />
          </g>
        );
      })}
    </svg>
  );
}

interface ShareProps {
  label: string;
  /** May exceed 100. */
  percent: number;
  tone: 'bar' | 'careful' | 'bad';
}

export function Share({ label, percent, tone }: ShareProps) {
  return (
    <svg className={css.share} viewBox="0 0 100 1" preserveAspectRatio="none" role="img" aria-label={label}>
      <rect className={css[tone]} width={Math.min(100, percent)} height={1} />
    </svg>
  );
}
