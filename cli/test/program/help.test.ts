// `berth help` with the names of commands.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { berth } from '../world/berth.ts';

test('help of an unknown command is refused as the command is, with a suggestion', async () => {
  for (const [words, expected] of [
    [['help', 'forwrd'], /error: unknown command 'forwrd'\n\(Did you mean forward\?\)/],
    [['help', 'sandbox', 'creat'], /error: unknown command 'creat'\n\(Did you mean create\?\)/],
    [['help', 'frwrd', 'x'], /error: unknown command 'frwrd'/],
  ] as const) {
    const { code, stdout, stderr } = await berth(words);
    assert.deepEqual([code, stdout], [2, ''], stderr);
    assert.match(stderr, expected);
    assert.doesNotMatch(stderr, /Usage: berth \[options\]/);
  }
});

test('help of a command is that of --help, also in a group', async () => {
  for (const names of [['forward'], ['sandbox'], ['sandbox', 'create'], ['usage'], ['exec']])
    assert.deepEqual(await berth(['help', ...names]), await berth([...names, '--help']), names.join(' '));
  const extra = await berth(['help', 'usage', 'nothing']);
  assert.match(extra.stdout, /Usage: berth usage /);
  assert.match((await berth(['help'])).stdout, /Usage: berth \[options\] \[command\]/);
});
