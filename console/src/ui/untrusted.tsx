import { visibleText } from '../rules/visible-text.ts';

/** Text that a guest or tenant chose: isolated, without characters that reorder or hide it. */
export function Untrusted({ text, absent }: { text: string | null; absent?: string }) {
  return text === null ? absent : <bdi>{visibleText(text)}</bdi>;
}
