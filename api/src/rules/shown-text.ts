// Text of a guest by which a person decides, such as the command of an approval: characters that
// hide or reorder text appear as their code. Pure.

/**
 * Control and format characters (bidirectional overrides among them), characters that are displayed
 * as nothing, line separators, private and unassigned characters, lone surrogates.
 */
export const HIDDEN = /[\p{Cc}\p{Cf}\p{DI}\p{Co}\p{Cs}\p{Cn}\u2028\u2029]/gu;

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

function codeOf(character: string): string {
  return String.raw`\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
