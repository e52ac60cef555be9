// Texts of calls as code.
import type { Language } from '../rules/snippets.ts';

const LANGUAGES: readonly { value: Language; label: string }[] = [
  { value: 'curl', label: 'curl' },
  { value: 'cli', label: 'CLI' },
  { value: 'typescript', label: 'TypeScript' },
];

export const snippetsText = {
  title: 'The same as code',
  language: 'Language',
  languages: LANGUAGES,
  copy: (name: string) => `the code: ${name}`,
  keyHint: 'The code reads an API key from the variable BERTH_API_KEY.',
} as const;
