// The two documents of promises name real tests: each row of each table ends in files of tests, and
// each title it quotes is one of theirs.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const CHECKOUT = join(import.meta.dirname, '../..');
/** Stands for any text: `…` in a document, `${...}` in a title that a loop makes. */
const ANY = '\0';

interface Row {
  line: number;
  cell: string;
}

/** The last cells of the rows of all tables, without heads. */
function lastCells(document: string): Row[] {
  const lines = readFileSync(join(CHECKOUT, document), 'utf8').split('\n');
  return lines.flatMap((text, index) => {
    const isHead = lines[index + 1]?.startsWith('|---') ?? false;
    if (!text.startsWith('|') || text.startsWith('|---') || isHead) return [];
    return [
      {
        line: index + 1,
        cell:
          text
            .replace(/\s*\|\s*$/, '')
            .split(' | ')
            .at(-1) ?? '',
      },
    ];
  });
}

/** The files of tests at a path: itself, or all below a folder. Undefined when there is nothing. */
function filesAt(path: string): string[] | undefined {
  const full = join(CHECKOUT, path);
  const found = statSync(full, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  if (found.isFile()) return [full];
  return readdirSync(full, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(full, name));
}

/**
 * Titles of the tests in a file, whoever runs them: the first argument of `test(`, `it(` or
 * `check(`, or the field `title`.
 */
function titlesIn(file: string): string[] {
  const calls = readFileSync(file, 'utf8').matchAll(
    /(?:\b(?:test|it|check)\(|\btitle:)\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g,
  );
  return [...calls].map(([, single, double, template]) =>
    (single ?? double ?? withoutHoles(template ?? '')).replaceAll(/\\(['"`])/g, '$1'),
  );
}

/** A template with every `${...}`, nested ones included, made {@link ANY}. */
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

/** Whether some text fits both patterns. */
function agree(one: string, other: string): boolean {
  if (one === '' && other === '') return true;
  if (one.startsWith(ANY)) return agree(one.slice(1), other) || (other !== '' && agree(one, other.slice(1)));
  if (other.startsWith(ANY)) return agree(other, one);
  return one !== '' && one[0] === other[0] && agree(one.slice(1), other.slice(1));
}

for (const document of ['docs/spec-gaps.md', 'docs/limits.md']) {
  test(`every row of ${document} names files of tests that exist, and titles that are in them`, () => {
    const rows = lastCells(document);
    assert.ok(rows.length > 10, 'the tables were not found');
    const wrong: string[] = [];
    for (const { line, cell } of rows) {
      const named = [...cell.matchAll(/`([\w./-]+\/[\w./-]+)`([^`]*)/g)];
      if (named.length === 0) wrong.push(`line ${line}: no file is named`);
      for (const [, path = '', rest = ''] of named) {
        const titles = filesAt(path)?.flatMap(titlesIn);
        if (titles === undefined) wrong.push(`line ${line}: there is no ${path}`);
        for (const [, quoted = ''] of rest.matchAll(/"([^"]+)"/g)) {
          const pattern = quoted.replaceAll('…', ANY);
          if (!titles?.some((title) => agree(pattern, title)))
            wrong.push(`line ${line}: no test of ${path} is called "${quoted}"`);
        }
      }
    }
    assert.deepEqual(wrong, []);
  });
}
