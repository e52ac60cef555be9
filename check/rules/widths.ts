// Line widths. The formatter breaks code; strings and comments are broken by hand.
import type { SourceFile } from '../source/tree.ts';

const CODE_COLUMNS = 120;
const COMMENT_COLUMNS = 100;
const COMMENT = /^\s*(?:\/\/|\/?\*)/;
/** Diagrams, commands and other indented lines of a comment keep their form and get 120 columns. */
const PREFORMATTED = /^\s*(?:\/\/|\*) {2,}/;

/** Lines that cannot be broken without hurting the reader more than their width does. */
const UNBREAKABLE = [
  // A single word, such as a URL.
  /^\s*(?:\/\/|\*)?\s*\S+$/,
  // A regular expression: JavaScript has no way to break one but into strings, with other escapes.
  /^\s*(?:\w+: )?\/(?![/*]).*\/[dgimsuvy]*[,;)]*$/,
  // Directives of the linter take effect on one line only.
  /^\s*\/\/ oxlint-/,
];

export function lineWidths(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, lines }) =>
    lines.flatMap((line, index) => {
      const limit = COMMENT.test(line) && !PREFORMATTED.test(line) ? COMMENT_COLUMNS : CODE_COLUMNS;
      if (line.length <= limit || UNBREAKABLE.some((form) => form.test(line))) return [];
      return [`${path}:${index + 1}: ${line.length} columns, limit ${limit}`];
    }),
  );
}
