// Labels as text: a line `key=value` each.
import { METADATA_LIMITS } from '@berth/sdk/limits';

export type LabelFault = { kind: 'no-key' | 'long-key' | 'long-value'; line: number } | { kind: 'too-many' };

/** Values stay text: nobody expects `007` to become a number. */
export function parseLabels(text: string): { labels: Record<string, string> } | { fault: LabelFault } {
  const labels: Record<string, string> = {};
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const equals = line.indexOf('=');
    const key = (equals === -1 ? line : line.slice(0, equals)).trim();
    const value = equals === -1 ? '' : line.slice(equals + 1).trim();
    if (key === '') return { fault: { kind: 'no-key', line: index + 1 } };
    if (key.length > METADATA_LIMITS.keyCharacters) return { fault: { kind: 'long-key', line: index + 1 } };
    if (value.length > METADATA_LIMITS.valueCharacters) return { fault: { kind: 'long-value', line: index + 1 } };
    labels[key] = value;
  }
  return Object.keys(labels).length > METADATA_LIMITS.keys ? { fault: { kind: 'too-many' } } : { labels };
}
