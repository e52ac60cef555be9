// Records as a table, or as cards on a narrow screen.
import type { ReactNode } from 'react';
import { en } from '../../text/en.ts';
import { useLongList } from './long-list.ts';
import { useWide } from '../media.ts';
import { Untrusted } from '../untrusted.tsx';
import css from './records.module.css';

const ROW_PIXELS = 54;
const CARD_PIXELS = 120;

export interface Column<T> {
  name: string;
  cell: (record: T) => ReactNode;
  /** The text is secondary. */
  quiet?: boolean;
  /** Cards leave it out. */
  wideOnly?: boolean;
}

/** The first names the record, and is the head of its card. */
export type Columns<T> = readonly [Column<T>, ...Column<T>[]];

interface Selection<T> {
  has: (record: T) => boolean;
  /** Chooses the record, or no longer. */
  toggle: (record: T) => void;
  /** Chooses all records, or none. */
  toggleAll: () => void;
  labelOf: (record: T) => string;
}

interface RecordsProps<T> {
  label: string;
  records: readonly T[];
  keyOf: (record: T) => string;
  columns: Columns<T>;
  renderActions?: (record: T) => ReactNode;
  selection?: Selection<T>;
  /** A press anywhere on a record follows the link of its head; cards are short. */
  compact?: boolean;
}

export function Records<T>(props: RecordsProps<T>) {
  return useWide() ? <Table {...props} /> : <Cards {...props} />;
}

function Cards<T>({ label, records, keyOf, columns, renderActions, selection, ...rest }: RecordsProps<T>) {
  const [head, ...others] = columns;
  const { list, shown, before, after, measure } = useLongList<HTMLUListElement>(records.length, CARD_PIXELS);
  return (
    <ul ref={list} className={css.cards} data-compact={rest.compact} aria-label={label}>
      <Gap of="li" pixels={before} />
      {shown.map((index) => {
        const record = records[index] as T;
        return (
          <li key={keyOf(record)} ref={measure} data-index={index}>
            <div className={css.cardHead}>
              <Choice selection={selection} record={record} />
              {head.cell(record)}
            </div>
            <dl>
              {others
                .filter(({ wideOnly = false }) => !wideOnly)
                .map(({ name, cell, quiet = false }) => (
                  <div key={name} className={quiet ? css.quiet : undefined}>
                    <dt>{name}</dt>
                    <dd>{cell(record)}</dd>
                  </div>
                ))}
            </dl>
            {renderActions === undefined ? null : <div className={css.actions}>{renderActions(record)}</div>}
          </li>
        );
      })}
      <Gap of="li" pixels={after} />
    </ul>
  );
}

function Table<T>({ label, records, keyOf, columns, renderActions, selection, ...rest }: RecordsProps<T>) {
  const [head, ...others] = columns;
  const { list, shown, before, after, measure } = useLongList<HTMLTableElement>(records.length, ROW_PIXELS);
  return (
    <table
      ref={list}
      className={css.table}
      data-compact={rest.compact}
      aria-label={label}
      aria-rowcount={records.length + 1}
    >
      <thead>
        <tr>
          {selection === undefined ? null : (
            <td className={css.choice}>
              <input
                type="checkbox"
                aria-label={en.states.chooseAll}
                checked={records.length > 0 && records.every(selection.has)}
                onChange={selection.toggleAll}
              />
            </td>
          )}
          {columns.map(({ name }) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
          {renderActions === undefined ? null : (
            <th scope="col">
              <span className={css.hidden}>{en.states.actions}</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        <Gap of="tr" pixels={before} />
        {shown.map((index) => {
          const record = records[index] as T;
          return (
            <tr key={keyOf(record)} ref={measure} data-index={index} aria-rowindex={index + 2}>
              {selection === undefined ? null : (
                <td className={css.choice}>
                  <Choice selection={selection} record={record} />
                </td>
              )}
              <th scope="row">{head.cell(record)}</th>
              {others.map(({ name, cell, quiet = false }) => (
                <td key={name} className={quiet ? css.quiet : undefined}>
                  {cell(record)}
                </td>
              ))}
              {renderActions === undefined ? null : (
                <td>
                  <div className={css.actions}>{renderActions(record)}</div>
                </td>
              )}
            </tr>
          );
        })}
        <Gap of="tr" pixels={after} />
      </tbody>
    </table>
  );
}

/** Takes the place of rows that are left out. */
function Gap({ of: Row, pixels }: { of: 'tr' | 'li'; pixels: number }) {
  return pixels > 0 ? <Row aria-hidden className={css.gap} style={{ height: pixels }} /> : null;
}

function Choice<T>({ selection, record }: { selection: Selection<T> | undefined; record: T }) {
  if (selection === undefined) return null;
  const { has, toggle, labelOf } = selection;
  return <input type="checkbox" aria-label={labelOf(record)} checked={has(record)} onChange={() => toggle(record)} />;
}

/** A second line below a record's name. `text`: from a person or a guest; null: no line. */
export function Below({ text, children }: { text?: string | null; children?: ReactNode }) {
  if (text === null) return null;
  return <span className={css.below}>{text === undefined ? children : <Untrusted text={text} />}</span>;
}
