// Test titles: subject, verb, outcome, short enough for one line of a report.
import type { SourceFile } from '../source/tree.ts';

const TITLE_CHARACTERS = 100;
const TITLE =
  /^\s*(?:void |await )?(?:t\.)?(?:test|it|describe|suite)(?:\.\w+)?\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/gm;

export function testTitles(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text, isTest }) => {
    if (!isTest) return [];
    return titlesOf(text)
      .filter((title) => title.length > TITLE_CHARACTERS)
      .map((title) => `${path}: title of ${title.length} characters, limit ${TITLE_CHARACTERS}: ${title}`);
  });
}

/** The titles of a test file, as written; placeholders of templates count as written. */
export function titlesOf(text: string): string[] {
  return [...text.matchAll(TITLE)].map(([, single, double, template]) => single ?? double ?? template ?? '');
}
