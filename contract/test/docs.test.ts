// docs/limits.md, docs/security.md and the pages of docs/spec-gaps/ name existing tests: the last
// cell of a row holds paths of test files, and titles of tests in them.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const CHECKOUT = join(import.meta.dirname, '../..');
/** Wildcard: `…` in a document, `${...}` in a generated title. */
const ANY = '\0';

interface Row {
  /** Document and line. */
  place: string;
  cell: string;
}

/** Last cells of all table rows, without headers. */
function lastCells(document: string): Row[] {
  const lines = readFileSync(join(CHECKOUT, document), 'utf8').split('\n');
  return lines.flatMap((text, index) => {
    const isHead = lines[index + 1]?.startsWith('|---') ?? false;
    if (!text.startsWith('|') || text.startsWith('|---') || isHead) return [];
    return [
      {
        place: `${document}:${index + 1}`,
        cell:
          text
            .replace(/\s*\|\s*$/, '')
            .split(' | ')
            .at(-1) ?? '',
      },
    ];
  });
}

/** A file, or all TypeScript files of a folder. Undefined if the path does not exist. */
function filesAt(path: string): string[] | undefined {
  const full = join(CHECKOUT, path);
  const found = statSync(full, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  if (found.isFile()) return [full];
  return readdirSync(full, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(full, name));
}

/** Titles of tests: the first argument of `test(`, `it(` or `check(`, or the field `title`. */
function titlesIn(file: string): string[] {
  const calls = readFileSync(file, 'utf8').matchAll(
    /(?:\b(?:test|it|check)\(|\btitle:)\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g,
  );
  return [...calls].map(([, single, double, template]) =>
    (single ?? double ?? withoutHoles(template ?? '')).replaceAll(/\\(['"`])/g, '$1'),
  );
}

/** Replaces every `${...}`, including nested ones, with {@link ANY}. */
function withoutHoles(template: string): string {
  let text = '';
  let depth = 0;
  for (let index = 0; index < template.length; index += 1) {
    if (template.startsWith('${', index)) {
      if (depth === 0) text += ANY;
      depth += 1;
      index += 1;
    } else if (depth > 0 && template[index] === '}') {
      depth -= 1;
    } else if (depth === 0) {
      text += template[index];
    }
  }
  return text;
}

/** True if a text could match both patterns. */
function agree(one: string, other: string): boolean {
  if (one === '' && other === '') return true;
  if (one.startsWith(ANY)) return agree(one.slice(1), other) || (other !== '' && agree(one, other.slice(1)));
  if (other.startsWith(ANY)) return agree(other, one);
  return one !== '' && one[0] === other[0] && agree(one.slice(1), other.slice(1));
}

/** Pages of open points; the index and the list of open paths have no tables. */
const SPEC_GAPS = readdirSync(join(CHECKOUT, 'docs/spec-gaps'))
  .filter((name) => !['README.md', 'open-paths.md'].includes(name))
  .map((name) => `docs/spec-gaps/${name}`);

/** Files and titles in the rows that do not exist. @param complete each row must name a file */
function wrongIn(rows: readonly Row[], { complete }: { complete: boolean }): string[] {
  const wrong: string[] = [];
  for (const { place, cell } of rows) {
    const named = [...cell.matchAll(/`([\w./-]+\/[\w./-]+)`([^`]*)/g)];
    if (complete && named.length === 0) wrong.push(`${place}: no file is named`);
    for (const [, path = '', rest = ''] of named) {
      const titles = filesAt(path)?.flatMap(titlesIn);
      if (titles === undefined) wrong.push(`${place}: there is no ${path}`);
      for (const [, quoted = ''] of rest.matchAll(/"([^"]+)"/g)) {
        const pattern = quoted.replaceAll('…', ANY);
        if (!titles?.some((title) => agree(pattern, title)))
          wrong.push(`${place}: no test of ${path} is called "${quoted}"`);
      }
    }
  }
  return wrong;
}

for (const [name, documents] of [
  ['docs/spec-gaps', SPEC_GAPS],
  ['docs/limits.md', ['docs/limits.md']],
] as const) {
  test(`every row of ${name} names existing test files and titles`, () => {
    const rows = documents.flatMap((document) => {
      const found = lastCells(document);
      assert.ok(found.length > 0, `${document} has no table`);
      return found;
    });
    assert.ok(rows.length > 10, 'the tables were not found');
    assert.deepEqual(wrongIn(rows, { complete: true }), []);
  });
}

test('every test that a table of docs/security.md names exists', () => {
  const rows = lastCells('docs/security.md');
  assert.ok(
    rows.some(({ cell }) => cell.includes('"')),
    'no row names a title',
  );
  assert.deepEqual(wrongIn(rows, { complete: false }), []);
});

test('the index of docs/spec-gaps lists every page', () => {
  const index = readFileSync(join(CHECKOUT, 'docs/spec-gaps/README.md'), 'utf8');
  const listed = [...index.matchAll(/\]\(([\w-]+\.md)\)/g)].map(([, name]) => `docs/spec-gaps/${name}`);
  assert.deepEqual(listed.toSorted(), [...SPEC_GAPS, 'docs/spec-gaps/open-paths.md'].toSorted());
});

test('every path of code that ARCHITECTURE.md and docs/security.md name exists', () => {
  for (const document of ['ARCHITECTURE.md', 'docs/security.md']) {
    const text = readFileSync(join(CHECKOUT, document), 'utf8');
    const paths = [...text.matchAll(/`((?:[a-z0-9-]+\/)+[\w.-]*)`/g)].map(([, path = '']) => path);
    const code = paths.filter((path) => readdirSync(CHECKOUT).includes(path.split('/')[0] ?? ''));
    assert.ok(code.length > 5, document);
    for (const path of code) assert.ok(filesAt(path) !== undefined, `${document}: ${path} does not exist`);
  }
});
