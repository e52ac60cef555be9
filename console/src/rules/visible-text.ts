// Text of guests and tenants, made harmless to read: characters that reorder or hide text appear as
// their code.

/** Controls, bidirectional marks and overrides, zero-width characters, line separators. */
// oxlint-disable-next-line no-control-regex -- these are the characters that are meant
const DECEPTIVE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Replaces each of these characters. */
export const replaceDeceptive = (text: string, by: (character: string) => string): string =>
  text.replaceAll(DECEPTIVE, by);

/** Code of a character of the basic plane: four hexadecimal digits. */
export const codeOf = (character: string): string => character.charCodeAt(0).toString(16).padStart(4, '0');

export function visibleText(text: string): string {
  return replaceDeceptive(text, (character) => `⟨U+${codeOf(character).toUpperCase()}⟩`);
}

/** Text of several lines: line breaks and tabs stay. */
export function visibleLines(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .split(/(\n|\t)/)
    .map((part, index) => (index % 2 === 0 ? visibleText(part) : part))
    .join('');
}
