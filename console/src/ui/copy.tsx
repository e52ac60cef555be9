// A value with a button that copies it, also where the browser has no clipboard (plain http).
import { Check, Copy } from 'lucide-react';
import { useRef, useState } from 'react';
import { en } from '../text/en.ts';
import css from './copy.module.css';

const SHOWN_MS = 2_000;

interface CopyValueProps {
  value: string;
  /** Name of the value, for the button. */
  what: string;
  /** Several lines. */
  block?: boolean;
}

export function CopyValue({ value, what, block = false }: CopyValueProps) {
  const [outcome, setOutcome] = useState<'done' | 'failed' | null>(null);
  const shown = useRef<HTMLElement>(null);
  const copy = async (): Promise<void> => {
    const done = await copyText(value, shown.current);
    setOutcome(done ? 'done' : 'failed');
    setTimeout(() => setOutcome(null), SHOWN_MS);
  };
  return (
    <span className={block ? css.block : css.copy}>
      <code ref={shown} dir="ltr">
        {value}
      </code>
      <button type="button" className={css.button} aria-label={en.copy.label(what)} onClick={() => void copy()}>
        {outcome === 'done' ? <Check aria-hidden /> : <Copy aria-hidden />}
      </button>
      <output className={outcome === 'failed' ? css.failed : css.hidden}>
        {outcome === null ? '' : en.copy[outcome]}
      </output>
    </span>
  );
}

/** Selects the shown text where scripts may not write to the clipboard. */
async function copyText(text: string, shown: HTMLElement | null): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    if (shown === null) return false;
    getSelection()?.selectAllChildren(shown);
    return document.execCommand('copy');
  }
}
