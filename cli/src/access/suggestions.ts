// What somebody may have meant by a word that is none of those there are.

const MOST = 3;
/** Edits that a typing mistake takes, for words of the length that ours have. */
const MOST_EDITS = 3;

/** The nearest words, the nearest first; none when none is near. */
export function suggestions(typed: string, words: readonly string[]): string[] {
  const wanted = typed.toLowerCase();
  return words
    .map((word) => ({ word, distance: wanted.length > 2 && word.includes(wanted) ? 1 : edits(wanted, word) }))
    .filter(({ word, distance }) => distance <= Math.min(MOST_EDITS, word.length / 2))
    .toSorted((one, other) => one.distance - other.distance)
    .slice(0, MOST)
    .map(({ word }) => word);
}

/**
 * How many characters are to be put in, taken out or replaced to make one of the other
 * (Levenshtein).
 */
function edits(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > MOST_EDITS) return Infinity;
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let at = 1; at <= one.length; at += 1) {
    const next = [at];
    for (let to = 1; to <= other.length; to += 1) {
      const replaced = (row[to - 1] ?? 0) + (one[at - 1] === other[to - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? Infinity;
}
