// Text of a guest by which a person decides, such as the command of an approval: characters that
// hide or reorder text appear as their code. Pure.

/**
 * Control and format characters (bidirectional overrides among them), characters that are displayed
 * as nothing, line separators, private and unassigned characters, lone surrogates.
 */
export const HIDDEN = /[\p{Cc}\p{Cf}\p{DI}\p{Co}\p{Cs}\p{Cn}\u2028\u2029]/gu;

/** Escape sequences that a terminal obeys, such as colours. */
// oxlint-disable-next-line no-control-regex
export const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|.)/g;

/** An emoji may need joiners, selectors and tags: those of a known one are kept. */
const EMOJI_OR_HIDDEN = new RegExp(String.raw`\p{RGI_Emoji}|${HIDDEN.source}`, 'gv');

/**
 * Replaces each such character by its code, as `\u{202e}`; line breaks and tabs stay unless
 * `isLine`. Cuts the result at `limit` UTF-16 units.
 */
export function shownText(
  text: string,
  { isLine, limit }: { isLine: boolean; limit: number },
): { text: string; isCut: boolean } {
  let shown = '';
  let at = 0;
  // Matching emoji is slow, and most texts hide nothing.
  if (text.search(HIDDEN) >= 0) {
    for (const { 0: found, index } of text.matchAll(EMOJI_OR_HIDDEN)) {
      const isKept = found.search(HIDDEN) !== 0 || (!isLine && (found === '\n' || found === '\t'));
      shown += text.slice(at, index) + (isKept ? found : codeOf(found));
      at = index + found.length;
      if (shown.length > limit) break;
    }
  }
  shown += text.slice(at);
  if (shown.length <= limit) return { text: shown, isCut: false };
  return { text: shown.slice(0, limit).replace(/[\ud800-\udbff]$/, ''), isCut: true };
}

/**
 * The end of a terminal's output, in at most `limit` UTF-16 units: without escape sequences, every
 * line on its own, other hidden characters by their code.
 */
export function shownEnd(output: string, limit: number): { text: string; isCut: boolean } {
  const text = output
    .replace(ESCAPES, '')
    .replace(/\r+\n?/g, '\n')
    .replace(HIDDEN, (found) => (found === '\n' || found === '\t' ? found : codeOf(found)));
  if (text.length <= limit) return { text, isCut: false };
  return { text: text.slice(-limit).replace(/^[\udc00-\udfff]/, ''), isCut: true };
}

function codeOf(character: string): string {
  return String.raw`\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
