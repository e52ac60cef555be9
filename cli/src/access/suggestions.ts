// Suggestions for a mistyped word.

const MOST = 3;
/** More edits than this are not a typing mistake. */
const MOST_EDITS = 3;

/** Similar words, nearest first. */
export function suggestions(typed: string, words: readonly string[]): string[] {
  const wanted = typed.toLowerCase();
  return words
    .map((word) => ({ word, distance: wanted.length > 2 && word.includes(wanted) ? 1 : edits(wanted, word) }))
    .filter(({ word, distance }) => distance <= Math.min(MOST_EDITS, word.length / 2))
    .toSorted((one, other) => one.distance - other.distance)
    .slice(0, MOST)
    .map(({ word }) => word);
}

/** Levenshtein distance, or Infinity if the lengths differ too much. */
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
