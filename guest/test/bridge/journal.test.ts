// Files of JSON lines that root in the guest has written to.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { LINE_BYTES, NumberedLines, readLines, readSmallJson } from '../../src/bridge/journal.ts';

function fileIn(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-journal-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, 'lines');
}

function linesFrom(path: string, from = 0): { lines: string[]; next: number } {
  const lines: string[] = [];
  const next = readLines(path, from, (line) => lines.push(line.toString()) > 0);
  return { lines, next };
}

for (const bytes of [LINE_BYTES + 1, 150 * 1_024 * 1_024]) {
  test(`a line of ${bytes} bytes is skipped, also while it has no end, and is read once`, (t) => {
    const path = fileIn(t);
    writeFileSync(path, `before\n${'x'.repeat(bytes)}`);
    const { lines, next } = linesFrom(path);
    assert.deepEqual([lines, next], [['before'], statSync(path).size]);
    appendFileSync(path, '\nafter\n');
    assert.equal(linesFrom(path, next).lines.at(-1), 'after');
    const whole = linesFrom(path);
    assert.deepEqual([whole.lines, whole.next], [['before', 'after'], statSync(path).size]);
  });
}

test('a line of the limit is read, wherever its end is in the chunks', (t) => {
  const path = fileIn(t);
  for (const bytes of [LINE_BYTES, LINE_BYTES - 1, 262_144, 262_143, 262_145]) {
    writeFileSync(path, `${'x'.repeat(bytes)}\nafter\n`);
    assert.deepEqual(
      linesFrom(path).lines.map(({ length }) => length),
      [bytes, 5],
    );
  }
});

test('a pipe, a folder and a large file in place of a file are no file', (t) => {
  const path = fileIn(t);
  execFileSync('mkfifo', [path]);
  assert.deepEqual(linesFrom(path), { lines: [], next: 0 });
  assert.equal(readSmallJson(path), null);
  assert.equal(new NumberedLines(path, 'seq').last, 0);
  assert.equal(readSmallJson(join(path, '..')), null);
  rmSync(path);
  writeFileSync(path, `{"a":"${'x'.repeat(LINE_BYTES)}"}`);
  assert.equal(readSmallJson(path), null);
  writeFileSync(path, '{"a":1}');
  assert.deepEqual(readSmallJson(path), { a: 1 });
});
