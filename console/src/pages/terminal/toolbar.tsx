import { ArrowDown, ArrowLeft, ArrowRight, ArrowUp } from 'lucide-react';
import { useId, useState, type ReactNode } from 'react';
import { AGENT_SESSION, SESSIONS } from '../../rules/terminal/attachment.ts';
import type { BarKey } from '../../rules/terminal/keys.ts';
import { terminalText as text } from '../../text/terminal.ts';
import { Check } from '../../ui/forms/index.ts';
import { Button, Untrusted } from '../../ui/kit/index.ts';
import css from './terminal.module.css';

interface ToolbarProps {
  session: string;
  /** Set by the program; empty: none. */
  title: string;
  onSession: (session: string) => void;
  onReadAloud: (on: boolean) => void;
  /** State of the terminal. */
  children: ReactNode;
}

export function Toolbar({ session, title, onSession, onReadAloud, children }: ToolbarProps) {
  const id = useId();
  const [readsAloud, setReadsAloud] = useState(false);
  return (
    <div className={css.toolbar}>
      <label htmlFor={id}>{text.session}</label>
      <select id={id} value={session} onChange={({ target }) => onSession(target.value)}>
        {SESSIONS.map((each) => (
          <option key={each} value={each}>
            {each === AGENT_SESSION ? text.agent : each}
          </option>
        ))}
      </select>
      {children}
      {title === '' ? null : (
        <span className={css.title}>
          <Untrusted text={text.titleOf(title)} />
        </span>
      )}
      <Check
        label={text.readAloud}
        value={readsAloud}
        onChange={(on) => {
          setReadsAloud(on);
          onReadAloud(on);
        }}
      />
    </div>
  );
}

const keysText = text.keys;
const KEYS: readonly (readonly [BarKey, ReactNode])[] = [
  ['Escape', keysText.Escape],
  ['Tab', keysText.Tab],
  ['ArrowLeft', <ArrowLeft key="left" aria-hidden />],
  ['ArrowUp', <ArrowUp key="up" aria-hidden />],
  ['ArrowDown', <ArrowDown key="down" aria-hidden />],
  ['ArrowRight', <ArrowRight key="right" aria-hidden />],
  ['|', keysText['|']],
  ['~', keysText['~']],
];

interface KeyBarProps {
  control: boolean;
  onControl: (on: boolean) => void;
  onPress: (key: BarKey) => void;
  onCopy: () => void;
  onPaste: () => void;
}

/** Keys that touch keyboards lack. */
export function KeyBar({ control, onControl, onPress, onCopy, onPaste }: KeyBarProps) {
  return (
    <div role="toolbar" aria-label={keysText.label} className={css.keys}>
      <Button aria-pressed={control} onClick={() => onControl(!control)}>
        {keysText.control}
      </Button>
      {KEYS.map(([key, shown]) => (
        <Button
          key={key}
          aria-label={typeof shown === 'string' ? undefined : keysText[key]}
          onClick={() => onPress(key)}
        >
          {shown}
        </Button>
      ))}
      <Button onClick={onCopy}>{keysText.copy}</Button>
      <Button reason={'clipboard' in navigator ? null : keysText.noPaste} onClick={onPaste}>
        {keysText.paste}
      </Button>
    </div>
  );
}
