// Names and values.
import type { ReactNode } from 'react';
import css from './facts.module.css';

interface FactsProps {
  /** Values by name; facts without a value are left out. */
  of: Readonly<Record<string, ReactNode>>;
  className?: string | undefined;
  label?: string;
}

export function Facts({ of, className = css.facts, label }: FactsProps) {
  return (
    <dl className={className} aria-label={label}>
      {Object.entries(of).map(([name, value]) =>
        value === null || value === undefined ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}
