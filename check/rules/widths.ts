// Line widths. The formatter breaks code; strings and comments are broken by hand.
import type { SourceFile } from '../source/tree.ts';

const CODE_COLUMNS = 120;
const COMMENT_COLUMNS = 100;
const COMMENT = /^\s*(?:\/\/|\/?\*)/;
/** A line of one word, such as a URL, cannot be broken. */
const UNBREAKABLE = /^\s*(?:\/\/|\*)?\s*\S+$/;

export function lineWidths(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, lines }) =>
    lines.flatMap((line, index) => {
      const limit = COMMENT.test(line) ? COMMENT_COLUMNS : CODE_COLUMNS;
      if (line.length <= limit || UNBREAKABLE.test(line)) return [];
      return [`${path}:${index + 1}: ${line.length} columns, limit ${limit}`];
    }),
  );
}
