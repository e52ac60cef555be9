// Escapes foreign text for the terminal: names and messages chosen by a tenant must not move the
// cursor, change colours or hide text.

/** C0 and C1 controls, line and paragraph separators, and bidirectional marks. */
// oxlint-disable-next-line no-control-regex -- these are the characters that are meant
const UNSAFE = /[\u0000-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069\uFEFF]/g;

/** Replaces control characters by their codes, which leaves a single line. */
export function plainText(text: string): string {
  return text.replaceAll(UNSAFE, (character) => {
    if (character === '\n') return String.raw`\n`;
    if (character === '\t') return String.raw`\t`;
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** The lines of a text, each with its control characters replaced. Tabs stay. */
export function plainLines(text: string): string[] {
  return text.split(/\r?\n/).map((line) => line.split('\t').map(plainText).join('\t'));
}

/** JSON with the same value, without characters that act on a terminal. */
export function plainJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent)
    .split('\n')
    .map((line) => plainText(line))
    .join('\n');
}
