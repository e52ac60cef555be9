// Text of others on somebody's terminal: names and messages that a tenant chose must not move the
// cursor, recolour what follows or hide what they say.

/**
 * C0 and C1 controls, the line and paragraph separators, and the marks that change the direction of
 * writing.
 */
// oxlint-disable-next-line no-control-regex -- these are the characters that are meant
const UNSAFE = /[\u0000-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069\uFEFF]/g;

/** One line without controls; each is shown as its code. */
export function plainText(text: string): string {
  return text.replaceAll(UNSAFE, (character) => {
    if (character === '\n') return String.raw`\n`;
    if (character === '\t') return String.raw`\t`;
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}
