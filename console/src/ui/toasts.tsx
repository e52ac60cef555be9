// Short confirmations, read to screen readers without a change of the focus.
import { useSyncExternalStore } from 'react';
import { Observed } from '../rules/page/observed.ts';
import { Untrusted } from './untrusted.tsx';
import css from './toasts.module.css';

const SHOWN_MS = 6_000;

interface Toast {
  id: number;
  text: string;
}

const toasts = new Observed<readonly Toast[]>([]);
let count = 0;

export function toast(text: string): void {
  count += 1;
  const id = count;
  toasts.set([...toasts.get(), { id, text }]);
  setTimeout(() => toasts.set(toasts.get().filter((one) => one.id !== id)), SHOWN_MS);
}

export function Toasts() {
  const shown = useSyncExternalStore(toasts.subscribe, toasts.get);
  return (
    <output className={css.toasts}>
      {shown.map(({ id, text }) => (
        <span key={id}>
          <Untrusted text={text} />
        </span>
      ))}
    </output>
  );
}
