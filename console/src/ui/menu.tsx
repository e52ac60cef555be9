// A button that discloses a panel of links and choices. Closes by Escape, by a press outside, and
// when the focus leaves.
import { useId, useRef, useState, type ReactNode } from 'react';
import css from './menu.module.css';

interface MenuProps {
  label: string;
  trigger: ReactNode;
  triggerClass: string | undefined;
  /** Classes of the panel: its position. */
  panelClass: string | undefined;
  children: ReactNode;
}

export function Menu({ label, trigger, triggerClass, panelClass, children }: MenuProps) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState(false);
  return (
    <div
      className={css.menu}
      role="presentation"
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !open) return;
        setOpen(false);
        button.current?.focus();
      }}
      onBlur={({ currentTarget, relatedTarget }) => {
        if (!currentTarget.contains(relatedTarget)) setOpen(false);
      }}
    >
      <button
        ref={button}
        type="button"
        className={triggerClass}
        aria-label={label}
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen(!open)}
      >
        {trigger}
      </button>
      {open ? (
        // Takes the focus of a press between its items, which would else close it.
        <div
          id={id}
          className={`${css.panel} ${panelClass}`}
          tabIndex={-1}
          role="presentation"
          onClick={({ target }) => {
            if (target instanceof Element && target.closest('a') !== null) setOpen(false);
          }}
        >
          {children}
        </div>
      ) : null}
    </div>
  );
}

/** Links of a menu. */
export function MenuList({ label, children }: { label: string; children: ReactNode }) {
  return (
    <ul className={css.list} aria-label={label}>
      {children}
    </ul>
  );
}

interface MenuChoiceProps<T extends string> {
  label: string;
  value: T;
  choices: Readonly<Record<T, string>>;
  onChoose: (value: T) => void;
}

/** A choice among few values. */
export function MenuChoice<T extends string>({ label, value, choices, onChoose }: MenuChoiceProps<T>) {
  const name = useId();
  return (
    <fieldset className={css.choice}>
      <legend>{label}</legend>
      {(Object.keys(choices) as T[]).map((one) => (
        <label key={one}>
          <input type="radio" name={name} checked={one === value} onChange={() => onChoose(one)} />
          {choices[one]}
        </label>
      ))}
    </fieldset>
  );
}
