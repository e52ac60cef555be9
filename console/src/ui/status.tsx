import { Circle, CircleAlert, CircleCheck, LoaderCircle, Moon, type LucideIcon } from 'lucide-react';
import { toneOf, type Tone } from '../rules/status.ts';
import { en } from '../text/en.ts';
import css from './status.module.css';

const ICONS: Readonly<Record<Tone, LucideIcon>> = {
  good: CircleCheck,
  busy: LoaderCircle,
  quiet: Circle,
  bad: CircleAlert,
};

/** A sandbox's status: icon and word. */
export function Status({ status }: { status: string }) {
  const tone = toneOf(status);
  const Icon = status === 'stopped' ? Moon : ICONS[tone];
  return (
    <span className={`${css.status} ${css[tone]}`}>
      <Icon aria-hidden />
      <bdi>{en.status(status)}</bdi>
    </span>
  );
}

/** Whether something is done: icon and word. */
export function Tick({ done }: { done: boolean }) {
  const Icon = done ? CircleCheck : Circle;
  return (
    <span className={`${css.status} ${css.tick} ${done ? css.good : ''}`}>
      <Icon aria-hidden />
      {en.states.tick(done)}
    </span>
  );
}
