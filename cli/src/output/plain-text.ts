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
