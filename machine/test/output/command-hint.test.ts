// Suggested commands, as a shell reads them.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { commandHint } from '../../src/output/command-hint.ts';

test('a shell reads the data folder and option values of a suggested command unchanged', () => {
  for (const dataFolder of ['/var/lib/berth', '/a b', "/it's", '/$HOME', '/`id`', '/a;b', '/a\\b', '/*']) {
    const words = execFileSync(
      'sh',
      ['-c', `set -- ${commandHint('plans set', { dataFolder }, '--org', dataFolder)}; printf '%s\\n' "$@"`],
      {
        encoding: 'utf8',
        cwd: '/',
      },
    );
    assert.deepEqual(words.trimEnd().split('\n'), [
      './berth',
      'plans',
      'set',
      '--data-dir',
      dataFolder,
      '--org',
      dataFolder,
    ]);
  }
});

test('a plain folder is not quoted', () => {
  assert.equal(commandHint('down', { dataFolder: '/var/lib/berth' }), './berth down --data-dir /var/lib/berth');
});
