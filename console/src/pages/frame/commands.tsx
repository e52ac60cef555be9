// Keyboard shortcuts, and the button of the command palette. Their dialogs load at the first use.
import { Search } from 'lucide-react';
import { useEffect, useEffectEvent, useState, type ComponentType } from 'react';
import { createPortal } from 'react-dom';
import { useNavigate } from 'react-router';
import type { api } from '@berth/sdk';
import { SEQUENCE_MS, shortcutOf, type Place, type Shortcut } from '../../rules/page/shortcuts.ts';
import { PATHS } from '../../rules/paths.ts';
import { en } from '../../text/en.ts';
import { IS_MAC, PALETTE_KEYS, wantsSingles } from './keyboard.ts';
import type { PaletteProps } from './palette.tsx';
import css from './frame.module.css';

const DIALOGS = {
  palette: async () => (await import('./palette.tsx')).Palette,
  list: async () => (await import('./shortcuts.tsx')).Shortcuts,
};

const isModal = (): boolean => document.querySelector('dialog[open]') !== null;

function placeOf(target: EventTarget | null): Place {
  if (!(target instanceof Element)) return 'page';
  if (target.closest('.xterm') !== null) return 'terminal';
  return target.closest('input, textarea, select, [contenteditable=true], [role=textbox]') === null ? 'page' : 'field';
}

export function Commands({ org }: { org: api.Org | undefined }) {
  const navigate = useNavigate();
  const [opened, setOpened] = useState<{ Dialog: ComponentType<PaletteProps> } | null>(null);
  const show = (name: keyof typeof DIALOGS): void =>
    void DIALOGS[name]().then(
      // Another dialog, such as the one of an ended session, may have opened meanwhile.
      (Dialog) => setOpened((now) => (now === null && isModal() ? null : { Dialog })),
      // A banner offers a reload.
      () => undefined,
    );
  const onShortcut = useEffectEvent((shortcut: Shortcut) => {
    if (shortcut === 'palette' || shortcut === 'list') show(shortcut);
    else if (shortcut === 'filter') document.querySelector<HTMLElement>('main search :is(input, select)')?.focus();
    else if (shortcut === 'agents') void navigate(PATHS.agentSessions());
    else if (shortcut === 'inbox') void navigate(PATHS.inbox);
    else void navigate(org === undefined ? PATHS.home : PATHS.sandboxes(org.id));
  });
  useEffect(() => {
    let prefixedMs = -Infinity;
    const onKey = (event: KeyboardEvent): void => {
      const prefixed = event.timeStamp - prefixedMs < SEQUENCE_MS;
      const found = shortcutOf(event, { place: placeOf(event.target), mac: IS_MAC, prefixed, singles: wantsSingles() });
      prefixedMs = found === 'prefix' ? event.timeStamp : -Infinity;
      if (found === null || found === 'prefix' || event.defaultPrevented) return;
      // Control-K would open the browser's own search.
      event.preventDefault();
      if (!isModal()) onShortcut(found);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <>
      <button
        type="button"
        className={css.palette}
        aria-haspopup="dialog"
        aria-keyshortcuts={IS_MAC ? 'Meta+K' : 'Control+K'}
        onClick={() => show('palette')}
      >
        <Search aria-hidden />
        <span>{en.nav.palette}</span>
        <kbd>{PALETTE_KEYS}</kbd>
      </button>
      {opened === null
        ? null
        : createPortal(
            <opened.Dialog org={org} onClose={() => setOpened(null)} onShortcuts={() => show('list')} />,
            document.body,
          )}
    </>
  );
}
