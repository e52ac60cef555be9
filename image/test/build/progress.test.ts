import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { renderProgress } from '../../src/build/progress.ts';

describe('progress shown as text', () => {
  it('logs the name of each step at its start and its seconds at its end', async () => {
    const output = new PassThrough();
    const progress = renderProgress(output);
    progress.report({ step: 'one', message: 'First', done: 0, total: 2 });
    progress.report({ step: 'one', message: 'First', done: 2, total: 2 });
    progress.report({ step: 'two', message: 'Second' });
    progress.end();
    output.end();
    const lines = (await text(output)).replaceAll(/\d+\.\d s/g, 'N s');
    assert.equal(lines, '  First ...\n  First (N s)\n  Second ...\n  Second (N s)\n');
  });

  it('overwrites one line of a terminal with the count and never wraps it', async () => {
    const output = Object.assign(new PassThrough(), { isTTY: true, columns: 20 });
    const progress = renderProgress(output);
    progress.report({ step: 'one', message: 'A message that is too long', done: 1, total: 9 });
    progress.report({ step: 'one', message: 'Short', done: 2, total: 9 });
    progress.end();
    output.end();
    const shown = (await text(output)).split('\r\u001b[K');
    assert.equal(shown[1]?.length, 20);
    assert.equal(shown[2], '  Short 2/9');
    assert.match(shown[3] ?? '', /^ {2}Short \(\d+\.\d s\)\n$/);
  });
});
