// Lists the keyboard shortcuts. Those of single keys can be turned off.
import { useState } from 'react';
import { PREFIX, SEQUENCES, SINGLES, type Shortcut } from '../../rules/page/shortcuts.ts';
import { paletteText as text } from '../../text/palette.ts';
import { Check } from '../../ui/forms/index.ts';
import { Dialog, Facts } from '../../ui/kit/index.ts';
import { PALETTE_KEYS, setSingles, wantsSingles } from './keyboard.ts';

const KEYS: readonly (readonly [string, Shortcut])[] = [
  [PALETTE_KEYS, 'palette'],
  ...Object.entries(SEQUENCES).map(([key, shortcut]) => [`${PREFIX} ${key}`, shortcut] as const),
  ...Object.entries(SINGLES),
];

export function Shortcuts({ onClose }: { onClose: () => void }) {
  const [on, setOn] = useState(wantsSingles);
  return (
    <Dialog title={text.shortcuts} description={text.shortcutsHint} onClose={onClose}>
      <Facts
        of={Object.fromEntries(KEYS.map(([keys, shortcut]) => [text.shortcut[shortcut], <kbd key={keys}>{keys}</kbd>]))}
      />
      <Check
        label={text.singles}
        value={on}
        onChange={(checked) => {
          setSingles(checked);
          setOn(checked);
        }}
      />
    </Dialog>
  );
}
