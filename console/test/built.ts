// The console that the set-up built, and the sizes of its parts.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Folder of the built console. */
export function builtConsole(): string {
  const folder = process.env['BERTH_CONSOLE_FOLDER'] ?? '';
  assert.notEqual(folder, '', 'run tests with ./berth test: its set-up builds the console');
  return folder;
}

/** Compressed bytes of the files that the page loads before it shows anything. */
export function entrySizes(folder: string): { js: number; css: number } {
  const html = readFileSync(join(folder, 'index.html'), 'utf8');
  const loaded = [...html.matchAll(/(?:src|href)="\/console\/(assets\/[^"]+\.(js|css))"/g)];
  const sum = (kind: string): number =>
    loaded
      .filter(([, , ending]) => ending === kind)
      .reduce((total, [, path = '']) => total + readFileSync(join(folder, `${path}.gz`)).length, 0);
  return { js: sum('js'), css: sum('css') };
}
