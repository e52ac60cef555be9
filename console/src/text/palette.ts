// Texts of the command palette and the keyboard shortcuts.
import type { Shortcut } from '../rules/page/shortcuts.ts';

const SHORTCUTS: Readonly<Record<Shortcut, string>> = {
  palette: 'Search and run commands',
  sandboxes: 'Go to the sandboxes',
  agents: 'Go to the agent sessions',
  inbox: 'Go to the inbox',
  filter: 'Go to the filter of a list',
  list: 'Show this list',
};

export const paletteText = {
  label: 'Command, page, or sandbox by name or id',
  results: 'Results',
  groups: { page: 'This sandbox', pages: 'Pages', orgs: 'Orgs', settings: 'Console', sandboxes: 'Sandboxes' },
  count: (count: number) => (count === 0 ? 'Nothing matches.' : `${count} ${count === 1 ? 'result' : 'results'}`),
  searching: 'Searching sandboxes…',
  failed: (message: string) => `The sandboxes could not be searched: ${message}`,
  filter: (query: string) => `All sandboxes with “${query}”`,
  switchTo: (org: string) => `Switch to ${org}`,
  theme: (name: string) => `Theme: ${name}`,
  shortcuts: 'Keyboard shortcuts',
  shortcutsHint: 'Single keys do nothing in fields, in the editor and in the terminal.',
  shortcut: SHORTCUTS,
  singles: 'Shortcuts of single keys',
} as const;
