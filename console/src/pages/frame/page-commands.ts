// Commands of the page in view, for the palette.
import { useEffect } from 'react';
import { Observed } from '../../rules/page/observed.ts';

export interface Command {
  name: string;
  /** Why it cannot run; null: it can. */
  reason: string | null;
  run: () => void;
}

export const pageCommands = new Observed<readonly Command[]>([]);

/** Offers the commands while the component is mounted. */
export function useCommands(commands: readonly Command[]): void {
  // After each render: reasons follow the state of the page.
  useEffect(() => pageCommands.set(commands));
  useEffect(() => () => pageCommands.set([]), []);
}
