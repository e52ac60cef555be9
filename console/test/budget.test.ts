// Sizes of the built console, in gzip, and of its sources.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { builtConsole, entrySizes } from './built.ts';

const KB = 1_000;
const SOURCES = join(import.meta.dirname, '../src');

test('the entry is at most 175 KB of scripts and 18 KB of styles', () => {
  const { js, css } = entrySizes(builtConsole());
  assert.ok(js > 0 && js <= 175 * KB, `${js} bytes of scripts`);
  assert.ok(css > 0 && css <= 18 * KB, `${css} bytes of styles`);
});

test('the built page has no inline script, style or handler', () => {
  const html = readFileSync(join(builtConsole(), 'index.html'), 'utf8');
  assert.doesNotMatch(html, /<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/i);
});

test('the sources have at most 11,200 lines of code, without style sheets', () => {
  const files = readdirSync(SOURCES, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && /\.tsx?$/.test(entry.name),
  );
  const lines = files.flatMap((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8').split('\n'));
  const code = lines.filter((line) => line.trim() !== '' && !/^\s*(?:\/\/|\/\*|\*)/.test(line)).length;
  assert.ok(code > 0 && code <= 11_200, `${code} lines`);
});
